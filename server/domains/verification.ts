import type { DnsAnswer } from '#server/platform/dns/dns'
import { classifyAddress, isPublicAddress } from '#server/platform/outbound/addresses'
import { proxyOf } from './dns-proxies.ts'
import type { NameView, ResolverView } from './lookup.ts'
import type { DnsRecord } from './schema.ts'

/** Where names should lead. */
export interface Expected {
  /** Addresses of this server; on a private network those of its own interfaces. */
  addresses: readonly string[]
  /**
   * An alias to a name at or below this one leads here as well; absent when the base domain is nobody's own.
   */
  base_domain?: string
}
/** What DNS said about a domain, kept with it. */
export interface Finding {
  proven_by: 'address' | 'txt' | null
  /** Whether the text is there for every name, whatever the addresses say. */
  has_text: boolean
  points_here: boolean | null
  proxied_by: string | null
  message: string
  found: Record<'A' | 'AAAA' | 'CNAME' | 'TXT', string[]>
}

export const TXT_LABEL = '_portreeve'
export const txtValueOf = (token: string) => `portreeve-verification=${token}`
/** Where the proof is looked for: below the name, below the shorter one of a pair with and without `www`. */
export const txtNameOf = ({ hostname, counterpart }: { hostname: string; counterpart: string | null }) =>
  `${TXT_LABEL}.${counterpart && counterpart.length < hostname.length ? counterpart : hostname.replace(/^\*\./, '')}`

const values = (answer: DnsAnswer): string[] => (answer.outcome === 'found' ? answer.values : [])
const unique = (texts: readonly string[]) => [...new Set(texts)]
/** Texts of strangers are kept only as far as somebody needs them to recognise a wrong one. */
const SHOWN_TEXT = 255
const listed = (texts: readonly string[]) => texts.slice(0, 6).join(', ')

/**
 * The addresses that a record is advised for: private ones of IPv6 are taken where they are set, but
 * beside one of IPv4 nobody needs them, and they change with the network.
 */
function advised({ addresses }: Expected): readonly string[] {
  const isLasting = (one: string) => !one.includes(':') || classifyAddress(one) !== 'private'
  const lasting = addresses.filter(isLasting)
  return lasting.length > 0 ? lasting : addresses
}
/** What is to be done where a server that knows private addresses only stands behind a router. */
const routerNote = (found: readonly string[], { addresses }: Expected): string =>
  found.some(isPublicAddress) && !addresses.some(isPublicAddress)
    ? ' If that is the router in front of this server, an administrator enters it in the settings, under DNS, as a public address.'
    : ''

/** Where a resolver's answer leads. */
type Lead = 'here' | 'mixed' | 'elsewhere' | 'proxied' | 'empty' | 'missing' | 'circle' | 'unknown'
function leadOf(view: ResolverView, expected: Expected): Lead {
  const { base_domain } = expected
  if (view.circle) return 'circle'
  const addresses = [...values(view.a), ...values(view.aaaa)]
  if (addresses.length === 0) {
    if (view.a.outcome === 'failed' || view.aaaa.outcome === 'failed') return 'unknown'
    return view.a.outcome === 'missing' ? 'missing' : 'empty'
  }
  if (
    base_domain !== undefined &&
    view.aliases.some((alias) => alias === base_domain || alias.endsWith(`.${base_domain}`))
  )
    return 'here'
  if (addresses.some((address) => proxyOf(address) !== undefined)) return 'proxied'
  const ours = addresses.filter((address) => expected.addresses.includes(address)).length
  if (ours === 0) return 'elsewhere'
  return ours < addresses.length ? 'mixed' : 'here'
}

/** A resolver answers for the end of an alias: without that name, its owner looks for the fault at their own. */
function withoutAddress(
  name: string,
  lead: 'empty' | 'missing',
  { aliases }: ResolverView,
  desired: string,
): string {
  const end = aliases.at(-1)
  if (end !== undefined)
    return `${name} is an alias (CNAME) of ${end}, which ${lead === 'missing' ? 'is not in DNS (NXDOMAIN)' : 'has no addresses'}. Correct the CNAME, or put an A or AAAA record that leads to ${desired} in its place.`
  return lead === 'empty'
    ? `${name} has neither an A nor an AAAA record. Add one that leads to ${desired}.`
    : `${name} is not in DNS (NXDOMAIN). Add an A or AAAA record that leads to ${desired}; new records can take a few minutes.`
}

/** One sentence about where a name leads and what to change. */
function sentenceOf(name: string, lead: Lead, view: ResolverView, expected: Expected): string {
  const addresses = [...values(view.a), ...values(view.aaaa)]
  const foreign = addresses.filter((address) => !expected.addresses.includes(address))
  const desired = listed(advised(expected))
  switch (lead) {
    case 'here':
      return `${name} leads to this server.`
    case 'mixed':
      return `${name} leads to this server and to ${listed(foreign)} as well. Remove the records with ${listed(foreign)}.`
    case 'elsewhere':
      return `${name} leads to ${listed(addresses)}; expected was ${desired}. Change its A and AAAA records, or the alias that it follows.${routerNote(addresses, expected)}`
    case 'proxied':
      return `${name} stands behind the proxy of ${proxyOf(addresses.find((address) => proxyOf(address))!)}, so its addresses prove nothing. Set the TXT record, or turn the proxy off.`
    case 'empty':
    case 'missing':
      return withoutAddress(name, lead, view, desired)
    case 'circle':
      return `The aliases of ${name} lead in a circle or over too many names: ${listed(view.aliases)}. Let the CNAME lead to a name that has addresses.`
    case 'unknown': {
      const failure = [view.a, view.aaaa].find((answer) => answer.outcome === 'failed') as Extract<
        DnsAnswer,
        { outcome: 'failed' }
      >
      return `${name} cannot be judged: ${view.resolver} ${failure.message}.`
    }
  }
}

interface Judgement {
  address: boolean
  txt: boolean
  points_here: boolean | null
  proxied_by: string | null
  message: string
}
function judgeName(
  { name, views }: NameView,
  expected: Expected,
  txt_value: string,
  txt_name: string,
): Judgement {
  const leads = views.map((view) => leadOf(view, expected))
  const known = leads.filter((lead) => lead !== 'unknown')
  const is_split =
    unique(known).length > 1 ||
    unique(views.filter((_view, at) => leads[at] === 'elsewhere').map((view) => values(view.a).sort().join()))
      .length > 1
  const address = known.length > 0 && known.every((lead) => lead === 'here')
  const texts = views.filter(({ txt }) => txt.outcome !== 'failed')
  const txt = texts.length > 0 && texts.every((view) => values(view.txt).includes(txt_value))
  const sentences = is_split
    ? [
        'The resolvers do not agree; this settles once a change has spread.',
        ...views.map((view, at) => `${view.resolver}: ${sentenceOf(name, leads[at]!, view, expected)}`),
      ]
    : unique(views.map((view, at) => sentenceOf(name, leads[at]!, view, expected)))
  if (!txt && texts.some((view) => view.txt.outcome === 'found'))
    sentences.push(`The TXT record at ${txt_name} holds another text than the one below.`)
  const proxied = views
    .flatMap((view) => [...values(view.a), ...values(view.aaaa)])
    .map(proxyOf)
    .find((provider) => provider !== undefined)
  const is_unknown = known.length === 0 || known.includes('proxied') || known.includes('here')
  return {
    address,
    txt,
    message: sentences.join(' '),
    proxied_by: proxied ?? null,
    points_here: !address && is_unknown ? null : address,
  }
}

/** Whether a domain leads here: all of its names do, one does not, or nobody can tell. */
function allPointHere(judged: readonly { points_here: boolean | null }[]): boolean | null {
  if (judged.some(({ points_here }) => points_here === false)) return false
  return judged.every(({ points_here }) => points_here) ? true : null
}

/** By what all names of a domain are proven; null while one is not. */
function provenBy(judged: readonly { address: boolean; txt: boolean }[]): 'address' | 'txt' | null {
  if (judged.every(({ address }) => address)) return 'address'
  return judged.every(({ address, txt }) => address || txt) ? 'txt' : null
}

/** Judges what resolvers say about all names of a domain. Pure. */
export function evaluate(
  names: readonly NameView[],
  expected: Expected,
  token: string,
  txt_name: string,
): Finding {
  const judged = names.map((name) => judgeName(name, expected, txtValueOf(token), txt_name))
  const proven_by = provenBy(judged)
  const views = names.flatMap((name) => name.views)
  const txt_note = proven_by === 'txt' ? ['The TXT record proves the domain.'] : []
  return {
    proven_by,
    has_text: judged.every(({ txt }) => txt),
    points_here: allPointHere(judged),
    proxied_by: judged.find(({ proxied_by }) => proxied_by)?.proxied_by ?? null,
    message: [...txt_note, ...judged.map(({ message }) => message)].join(' '),
    found: {
      A: unique(views.flatMap(({ a }) => values(a))),
      AAAA: unique(views.flatMap(({ aaaa }) => values(aaaa))),
      CNAME: unique(views.flatMap(({ aliases }) => aliases)),
      TXT: unique(views.flatMap(({ txt }) => values(txt)))
        .map((text) => text.slice(0, SHOWN_TEXT))
        .slice(0, 20),
    },
  }
}

/**
 * What the owner sets at the DNS provider: addresses lead here and prove the domain; the text proves it
 * without.
 */
export function recordsOf(
  domain: { hostname: string; counterpart: string | null; token: string },
  expected: Expected,
  finding: Finding | undefined,
): DnsRecord[] {
  const found = finding?.found ?? { A: [], AAAA: [], CNAME: [], TXT: [] }
  const names = domain.counterpart ? [domain.hostname, domain.counterpart] : [domain.hostname]
  const value = txtValueOf(domain.token)
  return [
    ...names.flatMap((name) =>
      advised(expected).map((address): DnsRecord => {
        const type = address.includes(':') ? 'AAAA' : 'A'
        return {
          type,
          name,
          value: address,
          purpose: 'address',
          found: found[type],
          ok: found[type].includes(address),
        }
      }),
    ),
    {
      type: 'TXT',
      name: txtNameOf(domain),
      value,
      purpose: 'ownership',
      found: found.TXT,
      ok: found.TXT.includes(value),
    },
  ]
}
