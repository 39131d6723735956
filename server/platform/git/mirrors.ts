import { createHash } from 'node:crypto'
import { constants, statfsSync } from 'node:fs'
import {
  chown,
  copyFile,
  link,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { freeForUsers } from '#server/kernel/disk-reserve'
import type { ObjectFormat } from './repository.ts'
import type { Identity } from './work-directory.ts'

/** Below it a fresh fetch takes no longer; above it a mirror would take more of the disk than it saves. */
const LEAST_BYTES = 1024 ** 2
const MOST_BYTES = 1024 ** 3
/** Each fetch adds one; then it begins anew, so that what no commit needs any more goes. */
const MOST_PACKS = 8
const DAY_MS = 86_400_000
const UNUSED_DAYS = 30
/** Part of the disk that all of them together may take: they save time, and the disk is everybody's. */
const PART_OF_DISK = 1 / 10

/** Bytes that the mirrors in a folder may take together. */
function mostTogether(directory: string): number {
  const { bsize, blocks } = statfsSync(directory)
  return bsize * blocks * PART_OF_DISK
}

interface Meta {
  format: ObjectFormat
  /** Commit that was fetched last; the remote is told that it is here. */
  tip: string
  /** False after a server that hands out whole branches only. */
  is_shallow: boolean
}

/**
 * What was fetched of repositories, kept from one checkout to the next, so that a remote sends only what changed.
 * One for each name and address: nobody's objects are ever seen by another app.
 */
export interface Mirrors {
  /** Puts what is kept into an empty repository of the same object format; says whether there was any. */
  seed(name: string, url: string, repository: string, format: ObjectFormat): Promise<boolean>
  /** Keeps what a repository holds now in place of what was kept before. */
  keep(name: string, url: string, repository: string, tip: string): Promise<void>
  forget(name: string): Promise<void>
  /** Removes those that nobody used for 30 days. */
  prune(now: number): Promise<void>
}

const isPack = (file: string): boolean => /^pack-[0-9a-f]+\.(pack|idx|rev)$/.test(file)
const filesOf = (folder: string) => readdir(folder).catch(() => [] as string[])

/** The same file under another name, or a copy where that is on another disk. */
async function linkOrCopy(from: string, to: string, identity: Identity | undefined): Promise<void> {
  try {
    await link(from, to)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EXDEV' && code !== 'EPERM' && code !== 'EMLINK') throw error
    await copyFile(from, to, constants.COPYFILE_FICLONE)
    if (identity) await chown(to, identity.uid, identity.gid)
  }
}

/** @param most bytes that all mirrors together may take; those that were used longest ago go first. */
export function createMirrors(
  directory: string,
  identity: Identity | undefined,
  most: (directory: string) => number = mostTogether,
): Mirrors {
  const folderOf = (name: string, url: string) =>
    join(directory, name, createHash('sha256').update(url).digest('hex').slice(0, 16))

  async function packsIn(folder: string): Promise<{ files: string[]; bytes: number }> {
    const files = (await filesOf(folder)).filter(isPack)
    const sizes = await Promise.all(files.map(async (file) => (await stat(join(folder, file))).size))
    return { files, bytes: sizes.reduce((sum, size) => sum + size, 0) }
  }

  /** When the mirror of a name was used last, and what it takes. */
  async function look(name: string) {
    const [kept = ''] = await filesOf(join(directory, name))
    const used = await stat(join(directory, name, kept, 'mirror.json')).catch(() => undefined)
    const { bytes } = await packsIn(join(directory, name, kept)).catch(() => ({ bytes: 0 }))
    return { name, bytes, used_ms: used?.mtimeMs ?? 0 }
  }
  const remove = (name: string) => rm(join(directory, name), { recursive: true, force: true })
  async function makeRoom(newest: string): Promise<void> {
    const all: Awaited<ReturnType<typeof look>>[] = []
    for (const name of await filesOf(directory)) all.push(await look(name))
    let bytes = all.reduce((sum, one) => sum + one.bytes, 0)
    for (const one of all.sort((a, b) => a.used_ms - b.used_ms)) {
      if (bytes <= most(directory)) return
      if (one.name === newest) continue
      await remove(one.name)
      bytes -= one.bytes
    }
  }

  const isWorthIt = ({ files, bytes }: { files: string[]; bytes: number }) =>
    bytes >= LEAST_BYTES &&
    bytes <= MOST_BYTES &&
    files.filter((file) => file.endsWith('.pack')).length <= MOST_PACKS &&
    freeForUsers(directory) > bytes

  return {
    async seed(name, url, repository, format) {
      const folder = folderOf(name, url)
      const text = await readFile(join(folder, 'mirror.json'), 'utf8').catch(() => undefined)
      if (text === undefined) return false
      const meta = JSON.parse(text) as Meta
      if (meta.format !== format) return false
      const packs = await packsIn(folder)
      // Where a session lies on another disk, its packs are copies.
      if (freeForUsers(repository) <= packs.bytes) return false
      const git = join(repository, '.git')
      const own = async (path: string) => {
        if (identity) await chown(path, identity.uid, identity.gid)
      }
      for (const made of ['objects/pack', 'refs/heads']) {
        await mkdir(join(git, made), { recursive: true })
        await own(join(git, made))
      }
      for (const file of packs.files)
        await linkOrCopy(join(folder, file), join(git, 'objects/pack', file), identity)
      if (meta.is_shallow) {
        await copyFile(join(folder, 'shallow'), join(git, 'shallow'))
        await own(join(git, 'shallow'))
      }
      await writeFile(join(git, 'refs/heads/kept'), `${meta.tip}\n`)
      await own(join(git, 'refs/heads/kept'))
      const now = new Date()
      await utimes(join(folder, 'mirror.json'), now, now)
      return true
    },
    async keep(name, url, repository, tip) {
      const folder = folderOf(name, url)
      const git = join(repository, '.git')
      const packs = await packsIn(join(git, 'objects/pack'))
      if (!isWorthIt(packs)) return remove(name)
      const made = join(directory, name, 'new')
      await rm(made, { recursive: true, force: true })
      await mkdir(made, { recursive: true, mode: 0o700 })
      for (const file of packs.files)
        await linkOrCopy(join(git, 'objects/pack', file), join(made, file), undefined)
      const is_shallow = await copyFile(join(git, 'shallow'), join(made, 'shallow')).then(
        () => true,
        () => false,
      )
      const meta: Meta = { format: tip.length === 64 ? 'sha256' : 'sha1', tip, is_shallow }
      await writeFile(join(made, 'mirror.json'), JSON.stringify(meta))
      // Also that of an address which the app had before.
      for (const other of await filesOf(join(directory, name)))
        if (other !== 'new') await rm(join(directory, name, other), { recursive: true, force: true })
      await rename(made, folder)
      await makeRoom(name)
    },
    forget: remove,
    async prune(now) {
      for (const name of await filesOf(directory))
        if ((await look(name)).used_ms < now - UNUSED_DAYS * DAY_MS) await remove(name)
    },
  }
}
