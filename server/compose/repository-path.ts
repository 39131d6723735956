import { posix } from 'node:path'

/** A path of a compose file seen from the root of the checkout; undefined when it leads out of it. */
export function inCheckout(directory: string, path: string): string | undefined {
  if (path.startsWith('/') || path.startsWith('~') || path.includes('\0') || path.includes('\\'))
    return undefined
  const whole = posix.normalize(posix.join(directory, path)).replace(/\/+$/, '')
  if (whole === '..' || whole.startsWith('../')) return undefined
  return whole || '.'
}
