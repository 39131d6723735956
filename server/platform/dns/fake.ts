import type { Dns, DnsAnswer, RecordType } from './dns.ts'

/** One question that was asked. */
export interface FakeQuestion {
  name: string
  type: RecordType
  resolver: string | undefined
}
type Records = Partial<Record<RecordType, string[]>>

/** Names in memory, **for tests only**. */
export interface FakeDns extends Dns {
  /**
   * Replaces the records of a name; `*.example.com` answers for names below it that are not set. Undefined
   * removes the name.
   */
  set(name: string, records: Records | undefined, resolver?: string): void
  /** Makes questions about a name fail; undefined mends it. */
  fail(
    name: string,
    reason: Extract<DnsAnswer, { outcome: 'failed' }>['reason'] | undefined,
    resolver?: string,
  ): void
  readonly questions: readonly FakeQuestion[]
}

/** A resolver follows this many aliases before it gives up. */
const MAX_ALIASES = 16

/** Creates a DNS in which no name is there. */
export function createFakeDns(): FakeDns {
  /** Records by `<resolver> <name>`; the resolver `*` stands for all that have nothing of their own. */
  const zone = new Map<string, Records>()
  const failures = new Map<string, Extract<DnsAnswer, { outcome: 'failed' }>['reason']>()
  const questions: FakeQuestion[] = []
  const of = <T>(map: ReadonlyMap<string, T>, name: string, resolver: string) =>
    map.get(`${resolver} ${name}`) ?? map.get(`* ${name}`)
  const recordsOf = (name: string, resolver: string): Records | undefined => {
    const own = of(zone, name, resolver)
    if (own) return own
    const labels = name.split('.')
    return labels
      .map((_label, index) => of(zone, `*.${labels.slice(index + 1).join('.')}`, resolver))
      .find((found) => found !== undefined)
  }
  const answer = (name: string, type: RecordType, resolver: string, aliases = 0): DnsAnswer => {
    const failure = of(failures, name, resolver)
    if (failure) return { outcome: 'failed', reason: failure, message: 'was made to fail' }
    const records = recordsOf(name, resolver)
    if (!records) return { outcome: 'missing' }
    const alias = records.CNAME?.[0]
    if (alias !== undefined && type !== 'CNAME')
      return aliases < MAX_ALIASES
        ? answer(alias, type, resolver, aliases + 1)
        : { outcome: 'failed', reason: 'servfail', message: 'follows aliases in a circle' }
    const values = records[type] ?? []
    return values.length > 0 ? { outcome: 'found', values: [...values] } : { outcome: 'empty' }
  }
  return {
    questions,
    set: (name, records, resolver = '*') =>
      void (records ? zone.set(`${resolver} ${name}`, records) : zone.delete(`${resolver} ${name}`)),
    fail: (name, reason, resolver = '*') =>
      void (reason ? failures.set(`${resolver} ${name}`, reason) : failures.delete(`${resolver} ${name}`)),
    async ask(name, type, resolver) {
      questions.push({ name, type, resolver })
      return answer(name.toLowerCase(), type, resolver ?? '')
    },
  }
}
