import { own } from '#server/kernel/own'
import { Resolver } from 'node:dns/promises'
import type { Dns, DnsAnswer, RecordType } from './dns.ts'

/** Wait for an answer and number of attempts at each server: at most about nine seconds in all. */
const TIMEOUT_MS = 3000
const TRIES = 2
/** Records of one answer that are looked at; more help nobody. */
const MAX_VALUES = 64

const FAILURES: Record<
  string,
  { reason: Extract<DnsAnswer, { outcome: 'failed' }>['reason']; message: string }
> = {
  ESERVFAIL: {
    reason: 'servfail',
    message:
      'could not find out (SERVFAIL); the name servers of the domain may be broken, or DNSSEC does not hold',
  },
  EREFUSED: { reason: 'refused', message: 'refuses to answer (REFUSED)' },
  ETIMEOUT: { reason: 'timeout', message: 'did not answer in time' },
  ECANCELLED: { reason: 'timeout', message: 'did not answer in time' },
  ECONNREFUSED: { reason: 'unreachable', message: 'cannot be reached' },
}

async function values(resolver: Resolver, name: string, type: RecordType): Promise<string[]> {
  switch (type) {
    case 'A':
      return resolver.resolve4(name)
    case 'AAAA':
      return resolver.resolve6(name)
    case 'CNAME':
      return resolver.resolveCname(name)
    // A text longer than 255 bytes comes in parts.
    case 'TXT':
      return (await resolver.resolveTxt(name)).map((parts) => parts.join(''))
  }
}

/** Asks real resolvers over UDP and TCP. */
export function createDnsResolver(options: { timeout_ms?: number; tries?: number } = {}): Dns {
  return {
    async ask(name, type, server, signal) {
      // A question that nobody waits for any more is not sent at all.
      if (signal?.aborted) return { outcome: 'failed', ...FAILURES.ECANCELLED! }
      const resolver = new Resolver({
        timeout: options.timeout_ms ?? TIMEOUT_MS,
        tries: options.tries ?? TRIES,
      })
      const cancel = () => resolver.cancel()
      try {
        if (server !== undefined) resolver.setServers([server])
        const asking = values(resolver, name, type)
        signal?.addEventListener('abort', cancel, { once: true })
        const found = (await asking).slice(0, MAX_VALUES)
        return found.length > 0
          ? {
              outcome: 'found',
              values: type === 'TXT' ? found : found.map((text) => text.toLowerCase().replace(/\.$/, '')),
            }
          : { outcome: 'empty' }
      } catch (error) {
        const { code = '' } = error as NodeJS.ErrnoException
        if (code === 'ENODATA') return { outcome: 'empty' }
        if (code === 'ENOTFOUND') return { outcome: 'missing' }
        return {
          outcome: 'failed',
          ...(own(FAILURES, code) ?? {
            reason: 'unusable',
            message: 'gave an answer that cannot be read',
          }),
        }
      } finally {
        signal?.removeEventListener('abort', cancel)
      }
    },
  }
}
