import { readdir, readFile, readlink, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { eachLine } from '#server/platform/engine/unseen'

/** A file of a build's layers that the engine has open. */
export interface OpenFile {
  /** Folder of the engine's data. */
  root: string
  /** Names of the layers in one of which it is. */
  layers: readonly string[]
  inode: number
  holes_bytes: number
  position: number
  writes: boolean
}

/** Layers of BuildKit have such names; those of containers and of pulled images are 64 hexadecimal digits. */
export const LAYER = '[0-9a-z]{25}'
/** The first folders of such names, since a build calls its own as it likes. */
const PLACE = new RegExp(`^(/.*?)/(?:overlay2/(${LAYER})/(?:diff|merged)|(tmp/buildkit-mount\\d+))/`)
/** A layer as the kernel tells a mount of it: by name, or by a short link. */
const NAMED = new RegExp(`(?<![0-9a-z])${LAYER}(?=/diff)`, 'g')
const LINKED = /(?<=[=:/]l\/)[A-Z0-9]{26}/g
const BLOCK_BYTES = 512
const WALK_LIMIT_MS = 600_000
/** Files below this are many before they are much; those of usual programs are left as they are. */
const WORTH_CUTTING = '+1M'

const text = (path: string) => readFile(path, 'utf8').catch(() => '')
/** What is read by one name of a file beside what that name takes of the disk. */
const holesOf = (size: number, blocks: number, names: number) =>
  Math.max(0, size - (blocks * BLOCK_BYTES) / names)
export const diffOf = (root: string, layer: string) => join(root, 'overlay2', layer, 'diff')

/** Layers that are seen at a mount, by what the kernel tells of all mounts. */
async function layersAt(root: string, mount: string, mountinfo: string): Promise<string[]> {
  const line = mountinfo.split('\n').find((one) => one.split(' ')[4] === mount) ?? ''
  const targets = await Promise.all(
    [...line.matchAll(LINKED)].map(([link]) => readlink(join(root, 'overlay2/l', link)).catch(() => '')),
  )
  const named = [line, ...targets].flatMap((one) => [...one.matchAll(NAMED)])
  return [...new Set(named.map(([layer]) => layer))]
}

/** Files of layers that builds made which a process has open. */
export async function openLayerFiles(pid: number): Promise<OpenFile[]> {
  let mounts: string | undefined
  const found: OpenFile[] = []
  for (const fd of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
    // A name may be no text; what is looked at of it is.
    const path = await readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')
    const [, root, layer, mount] = PLACE.exec(path) ?? []
    if (root === undefined) continue
    const stats = await stat(`/proc/${pid}/fd/${fd}`).catch(() => undefined)
    if (!stats?.isFile()) continue
    const info = await text(`/proc/${pid}/fdinfo/${fd}`)
    if (mount) mounts ??= await text(`/proc/${pid}/mountinfo`)
    found.push({
      root,
      layers: mount ? await layersAt(root, join(root, mount), mounts!) : [layer!],
      inode: stats.ino,
      holes_bytes: holesOf(stats.size, stats.blocks, stats.nlink || 1),
      position: Number(/^pos:\s+(\d+)/m.exec(info)?.[1] ?? 0),
      writes: (Number.parseInt(/^flags:\s+(\d+)/m.exec(info)?.[1] ?? '0', 8) & 3) !== 0,
    })
  }
  return found
}

/** When a layer was begun: this file is written with it and never again. */
export const layerBegan = async (root: string, layer: string): Promise<number | undefined> =>
  (await stat(join(root, 'overlay2', layer, 'link')).catch(() => undefined))?.mtimeMs

/** Whether a layer is part of an image, and stays as it is for ever. What cannot be looked up is. */
export async function isOfImage(root: string, layer: string): Promise<boolean> {
  const all = join(root, 'image/overlay2/layerdb/sha256')
  try {
    for (const name of await readdir(all))
      if ((await readFile(join(all, name, 'cache-id'), 'utf8')).trim() === layer) return true
    return false
  } catch {
    return true
  }
}

/** Bytes to read of a layer for which nothing is on the disk: holes, and all names of a file but one. */
export async function layerHoles(root: string, layer: string): Promise<number> {
  let sum = 0
  const which = ['-xdev', '-type', 'f', '-size', '+64k', '-printf', '%s %b %n\\n']
  await eachLine(['find', diffOf(root, layer), ...which], WALK_LIMIT_MS, (line) => {
    const [size = 0, blocks = 0, names = 1] = line.split(' ').map(Number)
    sum += holesOf(size, blocks, names)
  })
  return sum
}

/**
 * Sets the length of files of a layer. The search goes into folders without following links, and no step writes into
 * a layer which the engine reads.
 */
const setLengths = (root: string, layer: string, which: readonly string[], bytes: number): Promise<void> =>
  eachLine(
    [
      ...['find', diffOf(root, layer), '-xdev', '-type', 'f', ...which],
      ...['-execdir', 'truncate', `--size=${bytes}`, '--', '{}', '+'],
    ],
    WALK_LIMIT_MS,
    () => {},
  )

/** Leaves nothing of large files of a layer, so that whoever reads one is at its end. */
export const cutLayer = (root: string, layer: string): Promise<void> =>
  setLengths(root, layer, ['-size', WORTH_CUTTING], 0)

/** Gives them a length again that is refused: the builder keeps a layer, and would take it for one that is whole. */
export const spoilLayer = (root: string, layer: string, bytes: number): Promise<void> =>
  setLengths(root, layer, ['-empty'], bytes)
