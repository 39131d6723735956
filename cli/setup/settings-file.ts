import { existsSync, readFileSync, rmSync } from 'node:fs'
import { CommandError } from '../terminal.ts'
import { writeWhole } from '../upgrade/trial.ts'

type Environment = Record<string, string | undefined>

const SETTING = /^(PORT|HOST|DOCKER_HOST|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|PORTREEVE_[A-Z0-9_]+)$/
/** Of this call alone; the first password is not for a file that stays. */
const NOT_KEPT = [
  'PORTREEVE_BUILD',
  'PORTREEVE_URL',
  'PORTREEVE_API_KEY',
  'PORTREEVE_TOKEN',
  'PORTREEVE_CONTEXT',
  'PORTREEVE_APP',
  'PORTREEVE_CREDENTIALS',
]

/** One line for systemd and for shells alike, as `install.sh` writes it. */
const lineOf = (name: string, value: string) => `${name}="${value.replaceAll(/[\\"$`]/g, '\\$&')}"`

/** Settings as a text with a line each, in the order of their names. */
export const settingsText = (settings: Record<string, string>): string =>
  `${Object.entries(settings)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => lineOf(name, value))
    .join('\n')}\n`

/** Reads such a text. */
export const parseSettings = (text: string): Record<string, string> =>
  Object.fromEntries(
    [...text.matchAll(/^([A-Z][A-Z0-9_]*)="([^\n]*)"$/gm)].map(([, name, value]) => [
      name!,
      value!.replaceAll(/\\(.)/gs, '$1'),
    ]),
  )

/** Reads what an earlier setup kept. */
export const readSettings = (path: string): Record<string, string> =>
  existsSync(path) ? parseSettings(readFileSync(path, 'utf8')) : {}

/**
 * What was kept, with what this call says; an empty value takes a setting away. Throws where a value takes more than
 * a line, which no reader of the file finds again: a key that got lost on the way would be another one.
 */
export function mergeSettings(kept: Record<string, string>, env: Environment): Record<string, string> {
  const given = Object.entries(env).filter(([name]) => SETTING.test(name) && !NOT_KEPT.includes(name))
  const long = given.find(([, value]) => /[\n\r]/.test(value ?? ''))
  if (long) throw new CommandError(`${long[0]} must be one line.`, 2)
  const all = { ...kept, ...Object.fromEntries(given) }
  return Object.fromEntries(
    Object.entries(all).filter(
      (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '',
    ),
  )
}

export interface StoredSettings {
  /** Whether anything is different from before. */
  is_changed: boolean
  /** Puts back what was kept before; answers whether there was anything. */
  takeBack(): boolean
}

/** Writes the settings for root alone. */
export function storeSettings(path: string, settings: Record<string, string>): StoredSettings {
  const text = settingsText(settings)
  const before = existsSync(path) ? readFileSync(path, 'utf8') : undefined
  const is_changed = before !== text
  if (is_changed) writeWhole(path, text)
  const takeBack = () => {
    if (before === undefined) rmSync(path, { force: true })
    else writeWhole(path, before)
    return before !== undefined
  }
  return { is_changed, takeBack }
}
