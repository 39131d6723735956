import { own } from '#server/kernel/own'
import { loadConfig } from './config.ts'
import { editsBetween } from './edits.ts'

const PREFIX = 'PORTREEVE_'
/** Read by the command around the server: where the binary unpacks itself, and what the client talks to. */
const OF_THE_COMMAND = [
  'PORTREEVE_CACHE_DIR',
  'PORTREEVE_BUILD',
  'PORTREEVE_BACKUP_PASSPHRASE',
  'PORTREEVE_APP',
  'PORTREEVE_URL',
  'PORTREEVE_API_KEY',
  'PORTREEVE_TOKEN',
  'PORTREEVE_CONTEXT',
  'PORTREEVE_CREDENTIALS',
]

/** Every name that the configuration reads. */
function settingNames(): string[] {
  const asked = new Set<string>()
  const note = (_: object, name: string | symbol) => void asked.add(String(name))
  loadConfig(new Proxy({}, { get: note, getOwnPropertyDescriptor: note }))
  return [...asked]
}

/**
 * A variable that looks like a setting and is none. `nearest` is the setting that was probably meant, absent
 * when none is like it.
 */
export interface UnknownSetting {
  name: string
  nearest?: string
}

/** Variables that start with `PORTREEVE_` and that nothing reads; empty ones set nothing and are left out. */
export function unknownSettings(env: Record<string, string | undefined>): UnknownSetting[] {
  const known = settingNames()
  const odd = Object.keys(env).filter(
    (name) =>
      name.toUpperCase().startsWith(PREFIX) &&
      !known.includes(name) &&
      !OF_THE_COMMAND.includes(name) &&
      own(env, name)?.trim(),
  )
  return odd.sort().map((name) => {
    const ranked = known
      .filter((one) => one.startsWith(PREFIX))
      .map((one) => ({ one, edits: editsBetween(name.toUpperCase(), one) }))
      .sort((a, b) => a.edits - b.edits)
    const [best] = ranked
    return best && best.edits <= (name.length - PREFIX.length) / 2 ? { name, nearest: best.one } : { name }
  })
}
