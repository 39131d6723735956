import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'

/** What resolv.conf says of names, apart from what c-ares reads of it for itself. */
export interface ResolverFile {
  /** Addresses of the name servers, first choice first. */
  servers: string[]
  /** Domains that are put behind a name. */
  search: string[]
  /** Dots from which on a name is asked for as it is before it is searched for. */
  ndots: number
}

/** More than this glibc does not take either. */
const MOST_NDOTS = 15

/**
 * Reads resolv.conf as glibc does: of several lines for the domains the last one counts, and without any the domain
 * of this machine's own name is searched.
 */
export async function readResolverFile(path: string): Promise<ResolverFile> {
  const text = await readFile(path, 'utf8').catch(() => '')
  const own_domain = hostname().split('.').slice(1).join('.')
  const file: ResolverFile = { servers: [], search: own_domain === '' ? [] : [own_domain], ndots: 1 }
  for (const line of text.split('\n')) {
    const [key, ...values] = line
      .replace(/[#;].*/, '')
      .trim()
      .split(/\s+/)
    if (key === 'nameserver' && values[0]) file.servers.push(values[0])
    if (key === 'domain') file.search = values.slice(0, 1)
    if (key === 'search') file.search = values
    const ndots = key === 'options' ? /(?:^|\s)ndots:(\d+)/.exec(values.join(' '))?.[1] : undefined
    if (ndots !== undefined) file.ndots = Math.min(Number(ndots), MOST_NDOTS)
  }
  file.search = file.search.map((domain) => domain.replace(/^\.+|\.+$/g, '')).filter(Boolean)
  return file
}
