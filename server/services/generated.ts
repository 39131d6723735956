import { randomBytes } from 'node:crypto'
import { own } from '#server/kernel/own'
import { newId } from '#server/kernel/ids'

/**
 * Variables that the platform makes up when a compose file asks for one that is not set: the part after the
 * kind is the file's own, so that `SERVICE_PASSWORD_DB` is the same wherever it stands.
 */
const KINDS: Readonly<Record<string, { secret: boolean; make(): string }>> = {
  USER: { secret: false, make: () => `user${newId('req').slice(4, 12)}` },
  PASSWORD: { secret: true, make: () => randomBytes(24).toString('base64url') },
  HEX: { secret: true, make: () => randomBytes(32).toString('hex') },
  BASE64: { secret: true, make: () => randomBytes(32).toString('base64') },
}
const NAME = /^SERVICE_(USER|PASSWORD|HEX|BASE64)_[A-Za-z0-9_]+$/

export const isGenerated = (name: string): boolean => NAME.test(name)

/** A new value for such a variable; undefined for any other name. */
export function generate(name: string): { value: string; secret: boolean } | undefined {
  const kind = NAME.exec(name)?.[1]
  const found = kind === undefined ? undefined : own(KINDS, kind)
  return found && { value: found.make(), secret: found.secret }
}
