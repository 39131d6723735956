import { randomBytes } from 'node:crypto'

/** Prefixes of resource ids. Source: api.md "Conventions". */
export type IdPrefix =
  | 'app'
  | 'dep'
  | 'rel'
  | 'dom'
  | 'crt'
  | 'db'
  | 'bkp'
  | 'sch'
  | 'prj'
  | 'usr'
  | 'ses'
  | 'key'
  | 'env'
  | 'vol'
  | 'mnt'
  | 'dst'
  | 'cron'
  | 'run'
  | 'alr'
  | 'upt'
  | 'ssh'
  | 'git'
  | 'reg'
  | 'node'
  | 'svc'
  | 'rdr'
  | 'prv'
  | 'whk'
  | 'dlv'
  | 'job'
  | 'evt'
  | 'inv'
  | 'req'
  | 'aud'
  | 'trm'
  | 'log'
  | 'cpy'
  | 'cat'

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const LENGTH = 20

/**
 * A new id, `<prefix>_<20 characters>`: 100 random bits. Lower case only, because ids become part of image
 * and container names, which the engine does not accept in upper case.
 */
export function newId(prefix: IdPrefix): string {
  let text = ''
  for (const byte of randomBytes(LENGTH)) text += ALPHABET[byte & 31]
  return `${prefix}_${text}`
}

/** Whether a text has the form of an id of this kind. A malformed id is answered like an unknown one. */
export function isId(prefix: IdPrefix, text: string): boolean {
  return text.startsWith(`${prefix}_`) && /^[a-z]+_[0-9a-hjkmnp-tv-z]{20}$/.test(text)
}
