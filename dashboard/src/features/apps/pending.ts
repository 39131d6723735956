import { words } from '@/lib/format'

/** Name of a field for people; variables keep the spelling that programs know them by. */
export const nameOf = (key: string): string =>
  key.startsWith('env.') ? key.slice(4) : words(key.replaceAll('.', ': '))
