import { networkInterfaces } from 'node:os'
import { createAddresses, usableAddresses } from '#server/addresses/service'
import type { Dns } from '#server/platform/dns/dns'
import { createDnsResolver } from '#server/platform/dns/resolver'
import { REACHED_KEY } from '#server/ingress/front-door'
import { createMeta } from '#server/kernel/meta'
import { defaultSections, type Sections } from '#server/settings/sections'
import { createSettingsRepository } from '#server/settings/repository'
import { type Check, fault, type Finding, note, ok, type Patient } from './finding.ts'

/** No app has this name, so only a wildcard record answers for it. */
const PROBE = 'portreeve-doctor'

/** A section of the settings as it is stored. */
function section<N extends keyof Sections>({ db, config }: Patient, name: N): Sections[N] {
  const row =
    db &&
    createSettingsRepository(db)
      .all()
      .find((one) => one.section === name)
  const fallback = defaultSections(config.build_concurrency)[name]
  return row ? { ...fallback, ...(JSON.parse(row.value) as Sections[N]) } : fallback
}

/** Names below it lead to the address that stands in them, wherever they are asked for; nobody sets records there. */
const BUILT_NAMES = '.sslip.io'

/** What brings names to this machine that lead nowhere. */
export function wayOut(name: string, asked: string, address: string): string {
  if (name.endsWith(BUILT_NAMES))
    return `The resolver of this machine does not answer for ${BUILT_NAMES.slice(1)}: some leave out names that lead to private addresses, and a closed network has none of them. Ask another resolver, or set PORTREEVE_BASE_DOMAIN to a domain whose wildcard leads to ${address}.`
  return `Set a record for ${asked === name ? name : `*.${name}`} to ${address}.`
}

/** Where names lead that should lead to this machine. */
async function lookUp(patient: Patient, name: string, asked: string, dns: Dns): Promise<Finding> {
  const { resolvers, public_addresses } = section(patient, 'dns')
  const own = new Set([...usableAddresses(networkInterfaces()), ...public_addresses])
  const answers = await Promise.all(
    (['A', 'AAAA'] as const).map((type) => dns.ask(asked, type, resolvers[0])),
  )
  const found = answers.flatMap((answer) => (answer.outcome === 'found' ? answer.values : []))
  const record = wayOut(name, asked, [...own][0] ?? 'the address of this machine')
  if (found.length === 0) {
    const failed = answers.find((answer) => answer.outcome === 'failed')
    return failed
      ? note(
          `Where ${asked} leads could not be found out: the resolver ${failed.message}.`,
          'Look at /etc/resolv.conf.',
        )
      : fault(`${asked} has no address, so it does not lead to this machine.`, record)
  }
  if (found.some((address) => own.has(address)))
    return ok(`${asked} leads to this machine (${found.join(', ')}).`)
  return note(
    `${asked} leads to ${found.join(', ')}, which is no address of this machine's interfaces.`,
    `If that is a router or proxy in front of this machine, all is well. Otherwise: ${record}`,
  )
}

/** Who reaches the plain port beside the dashboard's domain. */
function doorOf({ db, config }: Patient, dashboard_domain: string): string {
  if (config.host_is_chosen) return `Port ${config.port} is open on ${config.host}, as HOST says.`
  return db && createMeta(db).get(REACHED_KEY) === dashboard_domain
    ? `Port ${config.port} takes connections of this machine only; HOST=0.0.0.0 opens it.`
    : `Port ${config.port} is open on every address until an administrator comes in by that name.`
}

export const NAMES: readonly Check[] = [
  {
    name: 'base domain',
    look(patient) {
      const base = createAddresses(patient.config, () => section(patient, 'domain')).base_domain()
      if (base === 'localhost' || base.endsWith('.localhost'))
        return note(
          `Apps are named <name>.${base}, which leads here on this machine only.`,
          'Set PORTREEVE_BASE_DOMAIN, or the base domain in the settings, to a domain whose wildcard leads here.',
        )
      return lookUp(patient, base, `${PROBE}.${base}`, createDnsResolver())
    },
  },
  {
    name: 'dashboard',
    async look(patient) {
      const { dashboard_domain } = section(patient, 'domain')
      if (dashboard_domain === null)
        return ok(`The dashboard is served on port ${patient.config.port}, under every name and address.`)
      const found = await lookUp(patient, dashboard_domain, dashboard_domain, createDnsResolver())
      return { ...found, says: `${found.says} ${doorOf(patient, dashboard_domain)}` }
    },
  },
]
