import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import { parse } from 'tldts'

/**
 * Stricter than DNS, without underscores: this installation's own names, and those below them, shall get
 * certificates.
 */
const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

/** The name as DNS knows it: ASCII, lower case, without the dot of the root. Empty when it cannot be one. */
export function readHostName(text: string): string {
  const bare = text.trim().replace(/\.$/, '')
  // Written as such, these are addresses for some programs and names for others.
  return /[\s/:@[\]%?#\\]/.test(bare) ? '' : domainToASCII(bare).toLowerCase()
}

/** What is wrong with a name that this installation is to be reached under; undefined when nothing is. */
export function hostNameFault(text: string): string | undefined {
  const name = readHostName(text)
  if (text.trim() === '') return 'must not be empty.'
  if (isIP(name) !== 0 || /(^|\.)(\d+|0x[0-9a-f]*)$/.test(name))
    return 'must be a name, not an address. Under its address, this server answers anyway.'
  if (name.includes('*')) return 'must be one name, without a wildcard.'
  if (name.length > 253) return 'must have at most 253 characters.'
  if (name === '' || !name.split('.').every((label) => LABEL.test(label)))
    return 'must be a host name such as apps.example.com, without scheme, port and path.'
  const { isIcann, publicSuffix, hostname } = parse(name)
  if (isIcann && publicSuffix === hostname && name !== 'localhost')
    return 'is a suffix below which anybody may register names. Set a domain of your own.'
  return undefined
}
