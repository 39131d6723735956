/** Twice as long as the address of an app may be. What a forge tells may be megabytes, for each of hundreds of apps. */
const LONGEST = 4096

/** An expression takes the square of the number of slashes in the middle. */
function withoutSlashes(path: string): string {
  let [from, to] = [0, path.length]
  while (path[from] === '/') from += 1
  while (to > from && path[to - 1] === '/') to -= 1
  return path.slice(from, to)
}

/** `host/owner/name` without scheme, user, port and `.git`; undefined when it is no address. */
export function placeOf(address: string): string | undefined {
  if (address.length > LONGEST) return undefined
  const scp = /^(?:[^@/]+@)?([^:/]+):(?!\/\/)(.+)$/.exec(address)
  const parsed = scp ? null : URL.parse(address)
  const host = scp?.[1] ?? parsed?.hostname
  const path = scp?.[2] ?? parsed?.pathname
  if (!host || !path) return undefined
  const name = withoutSlashes(path).replace(/\.git$/i, '')
  return name ? `${host.toLowerCase()}/${name}` : undefined
}

/** Scheme, host and port of a forge. One that is cloned from without TLS is asked without it as well. */
export function originOf(git_url: string): string | undefined {
  const place = forgeHost(git_url)
  if (!place) return undefined
  return /^https?:/.test(git_url) ? new URL(git_url).origin : `https://${place.host}`
}

/** Host of a forge's API and its port: an SSH address says nothing of the latter. */
export function forgeHost(git_url: string): { host: string; port: number } | undefined {
  const host = placeOf(git_url)?.split('/')[0]
  if (!host) return undefined
  const usual = git_url.startsWith('http:') ? 80 : 443
  const port = /^https?:/.test(git_url) ? Number(new URL(git_url).port || usual) : usual
  return { host, port }
}

/**
 * Whether one of the addresses that a forge tells is that of the app. SSH and HTTPS addresses of one
 * repository have the same host and path. Forges do not tell owners apart by case.
 */
export function isSameRepository(git_url: string, told: readonly string[]): boolean {
  const place = placeOf(git_url)?.toLowerCase()
  return place !== undefined && told.some((address) => placeOf(address)?.toLowerCase() === place)
}
