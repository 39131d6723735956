/** Places that the engine and the kernel fill themselves. */
const RESERVED = ['/proc', '/sys', '/dev', '/run/secrets']
/** Folders with the programs of the image: what hides them keeps the app from starting. */
const OF_THE_IMAGE = ['/bin', '/boot', '/etc', '/lib', '/lib32', '/lib64', '/run', '/sbin', '/usr', '/var']
const RESERVED_FILES = ['/etc/hosts', '/etc/hostname', '/etc/resolv.conf']

/** Whether `inner` is `outer` or lies below it. */
export const isWithin = (inner: string, outer: string): boolean =>
  inner === outer || inner.startsWith(`${outer}/`)

/** `/a/b/c` lies below `/a` and `/a/b`. */
export const foldersAbove = (path: string): string[] =>
  path
    .split('/')
    .slice(1, -1)
    .map((_, index, parts) => `/${parts.slice(0, index + 1).join('/')}`)

/** The place of those that the engine and the kernel fill themselves in which a path lies; undefined for any other. */
export const reservedPlace = (path: string): string | undefined =>
  RESERVED.find((place) => isWithin(path, place)) ?? RESERVED_FILES.find((file) => file === path)

/** What is wrong with a path inside a container, as a sentence that follows `path: `; undefined for a good one. */
export function mountPathFault(path: string): string | undefined {
  if (!path.startsWith('/')) return 'must be absolute, such as /data.'
  if (/[\u0000-\u001f\u007f]/.test(path)) return 'must not hold control characters.'
  if (path === '/') return 'must not be the root of the container.'
  if (/[:,]/.test(path))
    return 'must be the path alone: options such as :ro are not part of it. Set read_only instead.'
  if (/[$~*?"'`\\]/.test(path))
    return 'must be written out: names such as $HOME or ~ mean nothing here, since no shell reads them.'
  const parts = path.slice(1).split('/')
  if (parts.some((part) => part === '' || part === '.' || part === '..'))
    return 'must be written plainly: without //, /./, /../ and a slash at the end.'
  if (OF_THE_IMAGE.includes(path))
    return `must not be ${path} itself, which holds what the image needs. Use a folder or file in it, such as ${path}/app.`
  const reserved = reservedPlace(path)
  return reserved && `must not be in ${reserved}, which the engine fills itself.`
}
