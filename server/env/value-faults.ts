import type { PlainVariable } from './values.ts'

const isReference = (value: string) => value.includes('${{')
/** Folders in which images keep their programs; without them not even a shell is found. */
const OF_PROGRAMS = ['/usr/bin', '/bin']

function fault(key: string, value: string): string | undefined {
  if (isReference(value)) return undefined
  if (key === 'PORT' && !(/^\d{1,5}$/.test(value) && Number(value) >= 1 && Number(value) <= 65_535))
    return 'must be a port for PORT: a number from 1 to 65535 on which the app listens.'
  if (key === 'PATH' && !OF_PROGRAMS.every((folder) => value.split(':').includes(folder)))
    return `must hold ${OF_PROGRAMS.join(' and ')} for PATH: it takes the place of the image's own, and nothing is looked up in it, such as $PATH.`
  return undefined
}

/**
 * Why a value of a variable that programs and the platform rely on keeps the app from starting; undefined for
 * a good one. The value is never quoted.
 */
export function valueFault(key: string, plain: PlainVariable): string | undefined {
  const values = plain.runtime ? [plain.value, plain.preview_value] : []
  return values
    .map((value) => (value === null ? undefined : fault(key, value)))
    .find((text) => text !== undefined)
}
