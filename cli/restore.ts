import { own } from '#server/kernel/own'
import { existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { basename, dirname, join, resolve } from 'node:path'
import * as v from 'valibot'
import { ArchiveError } from '#server/backups/archive/archive-error'
import { checkProof, doubt } from '#server/backups/archive/authentic'
import { keyFromManifest } from '#server/backups/archives'
import { type Manifest, manifestKey, readManifest } from '#server/backups/archive/manifest'
import { checkArchive, readArchive } from '#server/backups/archive/read'
import { settleCopy } from '#server/backups/recovery'
import { inspectPlatform, unpackPlatform } from '#server/backups/targets/platform-archive'
import { loadConfig } from '#server/kernel/config'
import { openDb } from '#server/kernel/db'
import { directories } from '#server/kernel/directories'
import { createSecrets, KeyFileError, loadMasterKey, loadNextKey, type Secrets } from '#server/kernel/secrets'
import { lockDirectory, LockedError } from '#server/kernel/lock'
import { createLocalStore } from '#server/platform/objectstore/local'
import { type ObjectStore, ObjectStoreError } from '#server/platform/objectstore/objectstore'
import { findObjectStore } from '#server/platform/objectstore/stores'
import { authoritiesOf } from '#server/platform/outbound/authorities'
import { createGuardedClient } from '#server/platform/outbound/client'
import { createDial } from '#server/platform/outbound/dial'
import { createOutboundPolicy } from '#server/platform/outbound/policy'
import { prepareDataDirectory } from '#server/start/data-directory'
import { type Adopted, adoptNewer, bringArchives, recoveredIn, settleOwn } from './restored-archives.ts'
import { placeKeys } from './restored-keys.ts'
import { CommandError, say } from './terminal.ts'

export interface RestoreOptions {
  /** An archive, a folder with archives, or a file that describes a destination. */
  source: string
  passphrase_file?: string
  /** Whether it waits until the started server has everything back, and tells what. */
  wait?: boolean
}
interface Place {
  store: ObjectStore
  key: string
}
interface Opened extends Place {
  manifest: Manifest
  data_key: Buffer
}
type Config = ReturnType<typeof loadConfig>

const FOLLOW_MS = 500
/** Clocks of machines differ by less. */
const AHEAD_MS = 3_600_000
const PLATFORM = 'platform/installation/'
/** What the folder is called that an archive is unpacked to. */
const UNPACKED = 'work-restore-'
/** What people want to know is back, by table. */
const SHOWN: readonly [table: string, words: string][] = [
  ['users', 'users'],
  ['projects', 'projects'],
  ['apps', 'apps'],
  ['domains', 'domains'],
  ['certificates', 'certificates'],
  ['variables', 'variables'],
  ['databases', 'databases'],
  ['volumes', 'volumes'],
  ['backups', 'backups'],
]

/** Each of these words is in the plural. */
const countedAs = (words: string, count: unknown) => (count === 1 ? words.replace(/s$/, '') : words)

/** The names come from outside; quoted, they cannot steer a terminal. */
const sayLeft = (key: string, reason: string) => say(`Left alone: ${JSON.stringify(key)}. ${reason}`)

/** Opens what the API calls a storage provider, from a file with the same `kind` and `config`. */
function openDestination(path: string, config: Config): ObjectStore {
  let described: { kind?: unknown; config?: unknown }
  try {
    described = JSON.parse(readFileSync(path, 'utf8')) as typeof described
  } catch (cause) {
    throw new CommandError(`${path} is not JSON. Describe the destination as {"kind": …, "config": …}.`, 2, {
      cause,
    })
  }
  const descriptor = findObjectStore(String(described.kind))
  if (!descriptor) throw new CommandError(`${path} names no kind of destination: local, s3 or sftp.`, 2)
  const parsed = v.safeParse(descriptor.config, described.config ?? {})
  if (!parsed.success) {
    const [issue] = parsed.issues
    throw new CommandError(`${path}: config.${v.getDotPath(issue) ?? ''} ${issue.message}`, 2)
  }
  const policy = createOutboundPolicy({ allowed_private_hosts: config.allowed_private_hosts })
  const ca = authoritiesOf(config.ca_file)
  return descriptor.create(parsed.output as Record<string, unknown>, {
    client: createGuardedClient(policy, ca ? { ca } : {}),
    dial: createDial(policy),
    local_directory: join(directories(config.data_directory).backups, 'archives'),
  })
}

/** The manifest beside an archive and what opens the archive. Throws where it does not open. */
async function open({ store, key }: Place, passphrase: string | undefined): Promise<Opened> {
  const manifest = await readManifest(store, key)
  if (manifest.target.kind !== 'platform')
    throw new CommandError(
      `This is a backup of the ${manifest.target.kind} ${manifest.target.name}. Restore it in a running Portreeve, with POST /api/backups/:id/restore.`,
    )
  const data_key = await keyFromManifest(manifest, { passphrase })
  if (!data_key)
    throw new ArchiveError(
      'damaged',
      'It is not encrypted, as every backup of the platform is: somebody else made it.',
    )
  checkProof(manifest, data_key)
  return { store, key, manifest, data_key }
}

/**
 * The newest backup of the platform at a place that the passphrase opens and that proves who wrote it. Whoever may
 * write there can lay others beside it: they are told and left.
 */
async function newest(store: ObjectStore, passphrase: string | undefined): Promise<Opened> {
  const keys: string[] = []
  for await (const { key } of store.list(PLATFORM))
    if (key.endsWith('.manifest.json')) keys.push(key.replace(/\.manifest\.json$/, ''))
  if (keys.length === 0)
    throw new CommandError(
      'There is no backup of the platform here. Name an archive, or the folder that holds "platform" as the destination does.',
    )
  let first: ArchiveError | undefined
  let ahead: Opened | undefined
  for (const key of keys.sort().reverse()) {
    try {
      const opened = await open({ store, key }, passphrase)
      const reason = doubt(opened.manifest, key, opened.data_key)
      if (reason !== undefined) throw new ArchiveError('damaged', reason)
      if (Date.parse(opened.manifest.created_at) < Date.now() + AHEAD_MS) return opened
      // Made while a clock was wrong: what is newer by its own time is, in truth, older.
      ahead ??= opened
    } catch (error) {
      if (!(error instanceof ArchiveError || error instanceof CommandError)) throw error
      sayLeft(key, error.message)
      if (error instanceof ArchiveError) first ??= error
    }
  }
  if (ahead) return ahead
  await store.close()
  throw first ?? new CommandError('There is no backup of the platform at this destination.')
}

async function find({ source, ...options }: RestoreOptions, config: Config): Promise<Opened> {
  const passphrase = passphraseOf(options)
  const path = resolve(source)
  const found = statSync(path, { throwIfNoEntry: false })
  if (!found) throw new CommandError(`There is nothing at ${path}.`, 2)
  if (found.isDirectory()) return newest(createLocalStore(path), passphrase)
  if (path.endsWith('.json') && !path.endsWith('.manifest.json'))
    return newest(openDestination(path, config), passphrase)
  const archive = path.replace(/\.manifest\.json$/, '')
  if (!existsSync(manifestKey(archive)))
    throw new CommandError(`${manifestKey(archive)} is missing: keep the manifest beside the archive.`)
  return open({ store: createLocalStore(dirname(archive)), key: basename(archive) }, passphrase)
}

function passphraseOf({ passphrase_file }: Pick<RestoreOptions, 'passphrase_file'>): string | undefined {
  if (passphrase_file === undefined) return process.env.PORTREEVE_BACKUP_PASSPHRASE
  try {
    return readFileSync(passphrase_file, 'utf8').replace(/\r?\n$/, '')
  } catch (cause) {
    throw new CommandError(`The passphrase cannot be read from ${passphrase_file}.`, 2, { cause })
  }
}

/** Takes an empty data directory; one with an installation in it is never written over. */
function takeDirectory(config: Config): () => void {
  const data = config.data_directory
  const database = join(data, 'portreeve.db')
  if ((statSync(database, { throwIfNoEntry: false })?.size ?? 0) > 0)
    throw new CommandError(
      `${data} holds an installation. Move it away first, or set PORTREEVE_DATA_DIR to an empty folder.`,
    )
  prepareDataDirectory(data)
  try {
    const unlock = lockDirectory(data)
    // A restore that was killed left what it had unpacked, a key among it.
    for (const name of readdirSync(data).filter((one) => one.startsWith(UNPACKED)))
      rmSync(join(data, name), { recursive: true, force: true })
    return unlock
  } catch (error) {
    if (error instanceof LockedError) throw new CommandError('Portreeve is running there. Stop it first.')
    throw error
  }
}

interface Brought {
  /** Archives that were copied from the folder to where the installation looks for them. */
  copied: number
  /** Backups from after that of the platform. */
  adopted: Adopted
  /** Keys of another installation that were there, under the names that they have now. */
  set_aside: readonly string[]
}
/** Puts the files in their places: the key first, since a database without its key is refused. */
async function install(
  config: Config,
  folder: string,
  names: readonly string[],
  manifest: Manifest,
  store: ObjectStore,
): Promise<Brought> {
  const { keys } = directories(config.data_directory)
  const set_aside = placeKeys(folder, names, keys)
  const db = openDb(join(folder, 'portreeve.db'))
  // The server restores databases and volumes, and deploys apps, at its next start.
  settleCopy(db, manifest.created_at)
  await settleOwn(db, store, manifest)
  const copied = await bringArchives(db, store, manifest, config.data_directory)
  const adopted = await adoptNewer(db, store, manifest, secretsHere(config, keys))
  db.raw.pragma('wal_checkpoint(TRUNCATE)')
  db.close()
  for (const ending of ['-wal', '-shm'])
    rmSync(join(config.data_directory, `portreeve.db${ending}`), { force: true })
  renameSync(join(folder, 'portreeve.db'), join(config.data_directory, 'portreeve.db'))
  return { copied, adopted, set_aside }
}

/** What opens the stored secrets; undefined where the key is somewhere else. */
function secretsHere(config: Config, keys: string): Secrets | undefined {
  try {
    const key_file = join(keys, 'secret.key')
    const master = loadMasterKey(key_file, config.secret_key, true)
    const next = config.secret_key === undefined ? loadNextKey(key_file) : undefined
    return next ? createSecrets(next, master) : createSecrets(master)
  } catch (error) {
    if (error instanceof KeyFileError) return undefined
    throw error
  }
}

/** Follows the server that somebody starts meanwhile until everything is back, and tells what. */
async function follow(config: Config): Promise<void> {
  const began = performance.now()
  const db = openDb(join(config.data_directory, 'portreeve.db'))
  try {
    let found = recoveredIn(db)
    while (!found) {
      await wait(FOLLOW_MS)
      found = recoveredIn(db)
    }
    const list = (names: readonly string[]) => (names.length > 0 ? names.join(', ') : 'none')
    say(`Data restored: ${list(found.restored)}.`)
    say(`Apps that serve again: ${list(found.deployed)}.`)
    for (const [name, reason] of Object.entries(found.lost)) say(`Not back: ${name}. ${reason}`)
    say(`Everything together took ${((performance.now() - began) / 1000).toFixed(1)} s from here on.`)
    if (!found.succeeded || Object.keys(found.lost).length > 0)
      throw new CommandError('Not everything came back.', 1)
  } finally {
    db.close()
  }
}

async function restoreFrom({ store, key, manifest, data_key }: Opened, config: Config): Promise<void> {
  const began = performance.now()
  const { sha256, size_bytes, original_bytes } = manifest
  const archive = { store, key, sha256, size_bytes, original_bytes, data_key }
  await checkArchive(archive)
  const unlock = takeDirectory(config)
  const { keys } = directories(config.data_directory)
  await mkdir(keys, { recursive: true, mode: 0o700 })
  const folder = mkdtempSync(join(config.data_directory, UNPACKED))
  try {
    const names = await unpackPlatform(readArchive(archive), folder)
    const { counts } = inspectPlatform(join(folder, 'portreeve.db'))
    const { copied, adopted, set_aside } = await install(config, folder, names, manifest, store)
    say(`Restored the platform as of ${manifest.created_at} (Portreeve ${manifest.portreeve_version}):`)
    for (const [table, words] of SHOWN)
      if (Object.hasOwn(counts, table))
        say(`  ${String(own(counts, table)).padStart(6)} ${countedAs(words, own(counts, table))}`)
    say(
      names.includes('secret.key')
        ? 'The key of stored secrets is back.'
        : 'The key is not in the archive: start Portreeve with the PORTREEVE_SECRET_KEY of that installation.',
    )
    for (const path of set_aside) say(`Another key that was there is now ${path}.`)
    if (copied > 0) say(`Archives that were taken along: ${copied}.`)
    if (adopted.count > 0) say(`Backups that are newer than that of the platform: ${adopted.count}.`)
    if (adopted.ended > 0)
      say(`Backups that were under way when that of the platform was made, and ended well: ${adopted.ended}.`)
    for (const left of adopted.left) sayLeft(left.key, left.reason)
    say('Start Portreeve: it restores databases and volumes from their newest backups and deploys the apps.')
    say(`This took ${((performance.now() - began) / 1000).toFixed(1)} s.`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
    unlock()
  }
}

/** `portreeve restore`: an installation from a backup of the platform, into an empty data directory. */
export async function restore(
  env: Record<string, string | undefined>,
  options: RestoreOptions,
): Promise<void> {
  const config = loadConfig(env)
  let found: Opened | undefined
  try {
    found = await find(options, config)
    await restoreFrom(found, config)
    if (options.wait) await follow(config)
  } catch (error) {
    if (error instanceof ArchiveError || error instanceof ObjectStoreError) {
      const is_asked = error instanceof ArchiveError && error.code === 'key_needed'
      const way = is_asked ? 'Give it with --passphrase-file, or in PORTREEVE_BACKUP_PASSPHRASE. ' : ''
      throw new CommandError(`${error.message} ${way}Nothing was changed.`, 1, { cause: error })
    }
    throw error
  } finally {
    await found?.store.close()
  }
}
