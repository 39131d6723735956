import { randomBytes } from 'node:crypto'
import type { Dns, DnsAnswer } from '#server/platform/dns/dns'

/** Aliases that are followed to be shown; resolvers follow them by themselves. */
const MAX_ALIASES = 8
/**
 * How long all questions about a name may take together. One is answered or given up within nine seconds, but
 * aliases are asked for one after the other, and name servers that keep back each of them would hold up the looks at
 * other names for more than a minute.
 */
const LONGEST_MS = 20_000

/** What one resolver says about one name. */
export interface ResolverView {
  /** As configured; `this server's resolver` for the system's. */
  resolver: string
  a: DnsAnswer
  aaaa: DnsAnswer
  txt: DnsAnswer
  /** Names that the aliases lead over, in order. */
  aliases: string[]
  /** Whether the aliases lead in a circle. */
  circle: boolean
}
/** What all resolvers say about one name. */
export interface NameView {
  name: string
  views: ResolverView[]
}

async function aliasesOf(
  dns: Dns,
  name: string,
  resolver: string | undefined,
  signal: AbortSignal,
): Promise<{ aliases: string[]; circle: boolean }> {
  const aliases: string[] = []
  for (let at = name; aliases.length < MAX_ALIASES; ) {
    const answer = await dns.ask(at, 'CNAME', resolver, signal)
    if (answer.outcome !== 'found') return { aliases, circle: false }
    at = answer.values[0]!
    if (at === name || aliases.includes(at)) return { aliases: [...aliases, at], circle: true }
    aliases.push(at)
  }
  return { aliases, circle: true }
}

/**
 * Asks every resolver about a name. A wildcard is asked about with a name that nobody can have set by itself.
 * @param txt_name where the text that proves the name is looked for.
 */
export async function lookUp(
  dns: Dns,
  resolvers: readonly string[],
  hostname: string,
  txt_name: string,
  signal: AbortSignal = AbortSignal.timeout(LONGEST_MS),
): Promise<NameView> {
  const name = hostname.replace(/^\*/, () => `portreeve-${randomBytes(6).toString('hex')}`)
  const servers: (string | undefined)[] = resolvers.length > 0 ? [...resolvers] : [undefined]
  const views = await Promise.all(
    servers.map(async (resolver): Promise<ResolverView> => {
      const [a, aaaa, txt, chain] = await Promise.all([
        dns.ask(name, 'A', resolver, signal),
        dns.ask(name, 'AAAA', resolver, signal),
        dns.ask(txt_name, 'TXT', resolver, signal),
        aliasesOf(dns, name, resolver, signal),
      ])
      return { resolver: resolver ?? "this server's resolver", a, aaaa, txt, ...chain }
    }),
  )
  return { name: hostname, views }
}
