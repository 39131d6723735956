import { createHash } from 'node:crypto'

const MAX_NAME = 63

/** Name of a compose app's volume in its project. */
export const stackVolumeName = (app_name: string, volume: string): string =>
  `${app_name}-${volume.toLowerCase().replace(/[^a-z0-9]+/g, '-')}`.slice(0, MAX_NAME).replace(/^-+|-+$/g, '')

/** The same where another stack has that name: what follows tells it from all others. */
export function distinctName(app_name: string, volume: string, mark_of = ''): string {
  const mark = createHash('sha256').update(`${app_name}/${volume}${mark_of}`).digest('hex').slice(0, 8)
  return `${stackVolumeName(app_name, volume).slice(0, MAX_NAME - mark.length - 1)}-${mark}`
}

/** The first of its names that is not taken. */
export function freeName(app_name: string, volume: string, isTaken: (name: string) => boolean): string {
  const plain = stackVolumeName(app_name, volume)
  if (!isTaken(plain)) return plain
  for (let count = 1; ; count += 1) {
    const name = distinctName(app_name, volume, count === 1 ? '' : `/${count}`)
    if (!isTaken(name)) return name
  }
}
