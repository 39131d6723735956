import { posix } from 'node:path'

/** A path of a compose file seen from the root of the checkout; undefined when it leads out of it. */
export function inCheckout(directory: string, path: string): string | undefined {
  if (path.startsWith('/') || path.startsWith('~') || path.includes('\0') || path.includes('\\'))
    return undefined
  const whole = posix.normalize(posix.join(directory, path)).replace(/\/+$/, '')
  if (whole === '..' || whole.startsWith('../')) return undefined
  return whole || '.'
}

/** The file of a path, and those in the folder of that path. The names are sorted, as those of a checkout are. */
export function filesIn(names: readonly string[], path: string): readonly string[] {
  if (path === '.') return names
  const from = firstFrom(names, `${path}/`)
  let end = from
  while (names[end]?.startsWith(`${path}/`)) end++
  const found = names.slice(from, end)
  return isAmong(names, path) ? [path, ...found] : found
}

/** Whether a name is one of these. */
export const isAmong = (names: readonly string[], path: string): boolean =>
  names[firstFrom(names, path)] === path

/** Place of the first name that is not before a text. */
function firstFrom(names: readonly string[], text: string): number {
  let [low, high] = [0, names.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (names[middle]! < text) low = middle + 1
    else high = middle
  }
  return low
}
