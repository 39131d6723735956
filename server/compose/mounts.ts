import { createHash } from 'node:crypto'
import { posix } from 'node:path'
import { isWithin, reservedPlace } from '#server/kernel/mount-path'
import type { ServiceContext } from './context.ts'
import { at, type Fields, isFields, NOTHING_SET } from './issues.ts'
import type { ComposeBuild, ComposeFiles, ComposeMount } from './model.ts'
import { inCheckout } from './repository-path.ts'
import { readBoolean, readBytes, readText, readTexts } from './values.ts'

const FILES_MAX = 200
const FILES_MAX_BYTES = 1024 * 1024
const OPEN_PLACES = ['/dev/shm', '/run/secrets']
/** Stacks mount the host's so that containers have its time zone; each image has its own. */
const CLOCK_FILES = new Set(['/etc/localtime', '/etc/timezone'])
const HOST_PATH =
  'is refused: paths of the host are not mounted. Use a named volume for data, or a file of the repository.'

interface Wanted {
  type: string
  source: string | undefined
  target: string
  read_only: boolean
  size_bytes: number | null
}

/** `volumes` and `tmpfs` of one service. */
export function readMounts(
  context: ServiceContext,
  fields: Fields,
  path: string,
  build: ComposeBuild | null,
): ComposeMount[] {
  const { issues } = context
  const volumes = Array.isArray(fields.volumes) ? fields.volumes : []
  if (fields.volumes !== undefined && fields.volumes !== null && !Array.isArray(fields.volumes))
    issues.add(at(path, 'volumes'), 'must be a list.')
  const mounts = volumes.flatMap((value, index) => {
    const here = at(at(path, 'volumes'), index)
    if (!context.room.take('mounts', 1)) return []
    const desired = isFields(value) ? longForm(context, value, here) : shortForm(context, value, here)
    return desired ? oneMount(context, desired, here, build) : []
  })
  const memory = readTexts(issues, fields.tmpfs, at(path, 'tmpfs')).map((text): ComposeMount => {
    const [target = '', options = ''] = text.split(':')
    const size = /(?:^|,)size=([^,]+)/.exec(options)?.[1]
    const size_bytes = size ? (readBytes(issues, size, at(path, 'tmpfs')) ?? null) : null
    return { kind: 'tmpfs', path: target, size_bytes }
  })
  const all = [...mounts, ...memory]
  for (const mount of all) {
    const here = at(path, mount.kind === 'tmpfs' ? 'tmpfs' : 'volumes')
    if (!mount.path.startsWith('/') || posix.normalize(mount.path) === '/' || /[\0-\x1f:]/.test(mount.path))
      issues.add(here, 'must name an absolute path in the container.')
    const place = reserved(posix.normalize(mount.path))
    if (place !== undefined) issues.add(here, `must not be in ${place}, which the engine fills itself.`)
  }
  return all
}

/** Shared memory and secrets are what people do lay something over. */
const reserved = (path: string): string | undefined =>
  OPEN_PLACES.some((place) => isWithin(path, place)) ? undefined : reservedPlace(path)

/** `source:target:mode`, or a target alone. */
function shortForm(context: ServiceContext, value: unknown, path: string): Wanted | undefined {
  const text = readText(context.issues, value, path)
  if (text === undefined) return undefined
  const parts = text.split(':')
  if (parts.length > 3) return context.issues.add(path, 'must be source:target or source:target:mode.')
  if (parts.length === 1) return { ...typed('volume'), target: parts[0]! }
  const [source, target, mode = ''] = parts as [string, string, string?]
  const type = /^[./~]/.test(source) ? 'bind' : 'volume'
  return { ...typed(type), source, target, read_only: mode.split(',').includes('ro') }
}

const typed = (type: string): Wanted => ({
  type,
  source: undefined,
  target: '',
  read_only: false,
  size_bytes: null,
})

function longForm({ issues }: ServiceContext, fields: Fields, path: string): Wanted | undefined {
  const type = readText(issues, fields.type, at(path, 'type'))
  if (type === undefined) return issues.add(at(path, 'type'), 'is required.')
  const memory = isFields(fields.tmpfs) ? fields.tmpfs : {}
  return {
    type,
    source: readText(issues, fields.source, at(path, 'source')),
    target: readText(issues, fields.target, at(path, 'target')) ?? '',
    read_only: readBoolean(issues, fields.read_only, at(path, 'read_only')) ?? false,
    size_bytes: readBytes(issues, memory.size, at(at(path, 'tmpfs'), 'size')) ?? null,
  }
}

function oneMount(
  context: ServiceContext,
  expected: Wanted,
  path: string,
  build: ComposeBuild | null,
): ComposeMount[] {
  const { issues, strict, found } = context
  const { type, source, target, read_only, size_bytes } = expected
  if (type === 'tmpfs') return [{ kind: 'tmpfs', path: target, size_bytes }]
  if (source === '') {
    if (strict) issues.add(path, NOTHING_SET)
    return []
  }
  if (type === 'bind' && CLOCK_FILES.has(source ?? '')) {
    found.ignored.push({ path, text: 'Not a file of the server: set the variable TZ for a time zone.' })
    return []
  }
  if (type === 'bind') return filesOf(context, expected, path, build)
  if (type !== 'volume') {
    issues.add(
      path,
      `is refused: mounts of the type ${/^[a-z]{1,10}$/.test(type) ? type : 'given'} are not taken.`,
    )
    return []
  }
  // Data at a path without a name is kept too, under one that the path decides.
  const volume = source ?? `${context.name}${target.replace(/[^A-Za-z0-9.-]+/g, '_')}`
  if (/^[./~]/.test(volume)) issues.add(path, HOST_PATH)
  else if (source !== undefined && !context.volumes.has(source))
    issues.add(path, 'names a volume that is not among the top-level volumes.')
  return [{ kind: 'volume', volume, path: target, read_only }]
}

/** The last part of a path that has no ending, or that of folders such as `conf.d`: a folder rather than a file. */
const FOLDER = /(^|\/)\.?[^./]+(\.d)?$/
/** Endings that no folder has: what is missing there is no folder to be written. */
const ENDING = /\.(conf|cfg|cnf|ini|ya?ml|json|toml|xml|env|txt|sh|sql|pem|crt|key)$/i
/** Files that have no ending: by custom, or as `Caddyfile` and all that are called so. */
const NO_ENDING =
  /(^|\/)([A-Z][A-Za-z]*file|(caddy|docker|make|proc|gem)file|hosts|\.?(ht)?passwd|\.?pgpass|crontab|id_[a-z0-9]+|authorized_keys|known_hosts|LICENSE|README|VERSION)$/
const isFile = (path: string): boolean => ENDING.test(path) || NO_ENDING.test(path)
/** Paths of which each gives another name; `data/db` and `data_db` would give the same. */
const PLAIN_PATH = /^\.?[A-Za-z0-9-]+(\/\.?[A-Za-z0-9-]+)*$/

/** The volume of a folder that a service writes: one for each folder. */
function folderVolume(inside: string): string {
  const name = `folder_${inside.replace(/[^A-Za-z0-9-]/g, '_')}`
  if (PLAIN_PATH.test(inside)) return name
  return `${name}_${createHash('sha256').update(inside).digest('hex').slice(0, 8)}`
}

/**
 * A file or a folder of the repository, copied into the container when it starts. A folder that the
 * repository does not hold is one that the service writes: it is kept as a volume.
 */
function filesOf(
  context: ServiceContext,
  { source = '', target, read_only }: Wanted,
  path: string,
  build: ComposeBuild | null,
): ComposeMount[] {
  const { issues, files, found, directory } = context
  const inside = inCheckout(directory, source)
  const refuse = (message: string): ComposeMount[] => {
    issues.add(path, message)
    return []
  }
  if (inside === undefined || /docker\.sock/i.test(source)) return refuse(HOST_PATH)
  const place = files?.at(inside)
  const names = place?.names
  const has_files = (names ?? []).some((name) => name !== inside)
  const is_folder = has_files || (FOLDER.test(inside) && !isFile(inside) && !isFile(target))
  const is_written = place?.is_bare ?? true
  const volume = folderVolume(inside)
  // Data that are there go before files that came later: those can be had again.
  const has_data = context.holdsData(volume)
  if ((has_data || (is_written && is_folder)) && inside !== '.') {
    const text = is_written
      ? `A folder of which the repository holds nothing: kept as the volume ${volume}.`
      : `The volume ${volume} holds what the service wrote there before, so the files that the repository has there now are not mounted. Mount them at another path, or give the data a named volume.`
    found.taken.push({ path, text })
    found.surprising.push({ path, text })
    return [{ kind: 'volume', volume, path: target, read_only }]
  }
  if (!files || !names)
    return refuse('is refused: the file has no repository to take it from. Use a named volume or a config.')
  if (names.length === 0)
    return refuse(
      'names nothing in the repository. Add the file, or use a named volume for data that the service writes.',
    )
  const copies = copiesOf(context, files, names, inside, target)
  if (typeof copies !== 'string') return copies
  // Tools for development lay the sources over the image that was built from them.
  if (build && !build.inline && isIn(build.context, inside) && names[0] !== inside) {
    found.ignored.push({ path, text: 'The image is built from this folder.' })
    return []
  }
  return refuse(copies)
}

const isIn = (folder: string, name: string): boolean =>
  folder === '.' || name === folder || name.startsWith(`${folder}/`)

/** The rest of a file's path below a folder, with its slash; empty for the mounted file itself. */
function below(folder: string, name: string): string {
  if (name === folder) return ''
  return folder === '.' ? `/${name}` : name.slice(folder.length)
}

/** Files as mounts, or why they cannot be that. */
function copiesOf(
  { room }: ServiceContext,
  files: ComposeFiles,
  names: readonly string[],
  inside: string,
  target: string,
): ComposeMount[] | string {
  if (names.length > FILES_MAX) return `names more than ${FILES_MAX} files; build an image with them.`
  let bytes = 0
  const mounts: ComposeMount[] = []
  const folder = withoutEnd(target)
  for (const name of names) {
    if (!room.take('mounts', 1)) return []
    const content = files.read(name)
    bytes += Buffer.byteLength(content ?? '')
    if (content === undefined || bytes > FILES_MAX_BYTES)
      return 'names files that are not text or more than 1 MiB; build an image with them.'
    if (!room.take('file_characters', content.length)) return []
    const path = `${folder}${below(inside, name)}`
    mounts.push({ kind: 'file', path, content, mode: modeOf(content) })
  }
  return mounts
}

/** A path without the slashes at its end. An expression would look for that end from each slash within. */
function withoutEnd(path: string): string {
  let end = path.length
  while (path[end - 1] === '/') end -= 1
  return path.slice(0, end)
}

/** Scripts may be run: a checkout's permissions are not asked for. */
const modeOf = (content: string): number => (content.startsWith('#!') ? 0o755 : 0o644)
