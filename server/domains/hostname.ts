import { own } from '#server/kernel/own'
import { isIP } from 'node:net'
import { domainToASCII, domainToUnicode } from 'node:url'
import { parse } from 'tldts'
import { DNS_LABEL } from '#server/kernel/dns-names'

/** Names that an installation keeps for itself. */
export interface ReservedNames {
  /** Domain below which apps get their names. */
  base_domain: string
  /** Names of the dashboard. */
  dashboard_domains: readonly string[]
}
/** A host name as it is kept, or the sentence that says why it is refused. */
export type HostnameVerdict = { hostname: string } | { refused: string }

/** Special-use names (RFC 6761, 7686) that can never lead a client to this server. */
const UNREACHABLE: Record<string, string> = {
  localhost: 'leads every client to its own machine.',
  invalid: 'never resolves; .invalid is set aside for that.',
  onion: 'is a name of the Tor network, which this server does not serve.',
  example: 'never resolves; .example is set aside for documents.',
}
const isBelow = (name: string, parent: string) => name.endsWith(`.${parent}`)

/** The form of one name: what DNS and certificates can carry. */
function shapeOf(bare: string): string | undefined {
  const labels = bare.split('.')
  if (isIP(bare) !== 0) return 'is an IP address; certificates and routing need a name.'
  if (bare.includes('*')) return 'may have a wildcard only as its whole first label: *.example.com.'
  if (bare.length > 253) return 'is longer than 253 characters.'
  const odd = labels.find((label) => !DNS_LABEL.test(label))
  if (odd === '') return 'has an empty label: two dots in a row, or one at the start.'
  if (odd !== undefined)
    return odd.length > 63
      ? 'has a label of more than 63 characters.'
      : 'must be labels of letters, digits, hyphens and underscores, which do not begin or end with a hyphen.'
  if (labels.some((label) => label.startsWith('xn--') && ['', label].includes(domainToUnicode(label))))
    return 'has a label that is no valid international name.'
  return undefined
}

/**
 * Reads a host name as a user typed it: international names become ASCII, upper case becomes lower, one
 * trailing dot goes.
 * Names of private networks (`.internal`, `.lan`, `.local`, `.test`, `home.arpa`) are fine, for installations
 * that serve those.
 */
export function readHostname(text: string): HostnameVerdict {
  const trimmed = text.trim().replace(/[.\u3002\uff0e\uff61]$/, '')
  const wildcard = trimmed.startsWith('*.')
  const given = wildcard ? trimmed.slice(2) : trimmed
  if (trimmed === '') return { refused: 'must not be empty.' }
  if (isIP(given.replace(/^\[|\]$/g, '')) !== 0)
    return { refused: 'is an IP address; certificates and routing need a name.' }
  if (/[/:@?#%[\]\\\s]/.test(given))
    return {
      refused: 'must be a host name alone, such as shop.example.com, without scheme, port or path.',
    }
  const ascii = given.includes('*') ? given.toLowerCase() : domainToASCII(given)
  if (ascii === '' || isIP(ascii) !== 0) return { refused: 'is not a valid host name.' }
  const hostname = `${wildcard ? '*.' : ''}${ascii}`
  const refused =
    shapeOf(ascii) ??
    (hostname.length > 253 ? 'is longer than 253 characters.' : undefined) ??
    meaningOf(ascii, wildcard)
  return refused === undefined ? { hostname } : { refused }
}

/** Why no client finds its way to this server by a name; undefined when one may. */
export const unreachableReason = (bare: string): string | undefined =>
  own(UNREACHABLE, bare.slice(bare.lastIndexOf('.') + 1))

/** What the name stands for in the world. */
function meaningOf(bare: string, wildcard: boolean): string | undefined {
  const top = bare.slice(bare.lastIndexOf('.') + 1)
  const unreachable = unreachableReason(bare)
  if (unreachable !== undefined) return unreachable
  if (!bare.includes('.'))
    return wildcard
      ? 'covers a whole top-level domain.'
      : 'must have at least two labels, such as shop.example.com.'
  if (top === 'arpa' && !isBelow(bare, 'home.arpa')) return 'belongs to the infrastructure of the internet.'
  const { publicSuffix } = parse(bare, { allowPrivateDomains: true })
  if (publicSuffix === bare)
    return 'is a public suffix: names below it belong to different owners. Add one of those.'
  return undefined
}

/** Why a readable name cannot be given to an app of this installation; undefined when it can. */
export function reservedReason(
  hostname: string,
  { base_domain, dashboard_domains }: ReservedNames,
): string | undefined {
  const bare = hostname.replace(/^\*\./, '')
  if (dashboard_domains.includes(hostname)) return 'is the name of the dashboard.'
  const covered = dashboard_domains.find((name) => name.replace(/^[^.]*/, '*') === hostname)
  if (covered !== undefined) return `covers ${covered}, the name of the dashboard.`
  if (bare === base_domain || isBelow(bare, base_domain))
    return `is the installation's base domain or below it; names there are given to apps automatically. Rename the app, or choose a name outside of ${base_domain}.`
  return undefined
}

/** The name as people read it: `münchen.de` for `xn--mnchen-3ya.de`. */
export const readableHostname = (hostname: string): string => {
  const wildcard = hostname.startsWith('*.')
  const bare = wildcard ? hostname.slice(2) : hostname
  return `${wildcard ? '*.' : ''}${domainToUnicode(bare) || bare}`
}

/** Part of a name as people write it, in the form in which names are stored. */
export const storedText = (text: string): string =>
  (/[^ -~]/.test(text) && domainToASCII(text.trim())) || text.trim()

/** The other name of a pair with and without `www`. */
export const wwwCounterpart = (hostname: string): string =>
  hostname.startsWith('www.') ? hostname.slice(4) : `www.${hostname}`
