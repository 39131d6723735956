/** Types of records that Portreeve asks for. */
export type RecordType = 'A' | 'AAAA' | 'CNAME' | 'TXT'

/**
 * What a resolver said. `empty`: the name is there without such a record; `missing`: there is no such name
 * (NXDOMAIN);
 * `failed`: nothing can be concluded, `message` says why.
 */
export type DnsAnswer =
  | {
      outcome: 'found' /** Addresses, the name that an alias leads to, or texts; in lower case except texts. */
      values: string[]
    }
  | { outcome: 'empty' }
  | { outcome: 'missing' }
  | {
      outcome: 'failed'
      reason: 'servfail' | 'refused' | 'timeout' | 'unreachable' | 'unusable'
      message: string
    }

/** Questions to DNS resolvers. */
export interface Dns {
  /**
   * Asks one resolver. Never throws. An alias (CNAME) is followed by the resolver when addresses are asked
   * for.
   * @param name in ASCII.
   * @param resolver IP address, maybe with a port (`9.9.9.9`, `127.0.0.1:5353`, `[::1]:53`); the system's
   * when absent.
   * @param signal ends the question, which then counts as not answered in time.
   */
  ask(name: string, type: RecordType, resolver?: string, signal?: AbortSignal): Promise<DnsAnswer>
}
