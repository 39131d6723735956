import * as v from 'valibot'
import { invalid } from '#server/kernel/errors'
import { type DnsProviderDescriptor, DnsProviderError } from '#server/platform/dns-providers/provider'
import type { Dns } from '#server/platform/dns/dns'
import { MailError, type Mail, type SmtpSettings } from '#server/platform/mail/mail'
import type { GuardedClient } from '#server/platform/outbound/client'
import { OutboundError, type OutboundPolicy } from '#server/platform/outbound/outbound'
import type { AcmeSettings, DnsSettings } from './schema.ts'

/** Tries what an administrator wants to set, and throws a 422 that says what did not work. */
export interface SettingsChecks {
  dnsProvider(descriptor: DnsProviderDescriptor, config: Record<string, unknown>): Promise<void>
  /** @param asks whether the authority is asked; what it does not have to say is checked all the same. */
  acme(acme: AcmeSettings, asks: boolean): Promise<void>
  dns(dns: DnsSettings): Promise<void>
  /** Sends a test mail. */
  smtp(smtp: SmtpSettings, to: string): Promise<void>
}
export interface SettingsCheckPorts {
  client: GuardedClient
  policy: OutboundPolicy
  /** Mail by a server that is not set yet. */
  mailBy(smtp: SmtpSettings): Mail
  dns: Dns
  /** A name to ask DNS about. */
  probe_name(): string
  /** Name of this installation, for the test mail. */
  installation(): string
}

const PROVIDER_TIMEOUT_MS = 30_000
/** Failures to look a name up that a DNS server itself tells, so that one is there. */
const ANSWERS: ReadonlySet<string> = new Set(['servfail', 'refused'])
const Directory = v.object({
  newNonce: v.string(),
  newAccount: v.string(),
  newOrder: v.string(),
  meta: v.optional(v.object({ externalAccountRequired: v.optional(v.boolean()) })),
})

/** Address and port of a resolver as settings write it. */
export function parseResolver(text: string): { address: string; port: number } {
  const [, v6, v4, port] = /^(?:\[([^\]]+)\]|(\d+(?:\.\d+){3}))(?::(\d+))?$/.exec(text) ?? []
  return { address: v6 ?? v4 ?? text, port: port === undefined ? 53 : Number(port) }
}

async function readDirectory(client: GuardedClient, url: string): Promise<v.InferOutput<typeof Directory>> {
  const answer = await client.send(url, {
    max_bytes: 65_536,
    headers: { accept: 'application/json' },
  })
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), Directory), await answer.text())
  if (answer.status !== 200 || !parsed.success)
    throw invalid('directory_url', `does not answer as an ACME directory (HTTP ${answer.status}).`)
  return parsed.output
}

/** The tests of each section against the world outside. */
export function createSettingsChecks(ports: SettingsCheckPorts): SettingsChecks {
  const { client, policy } = ports
  const asking = async (path: string, work: () => Promise<void> | void): Promise<void> => {
    try {
      await work()
    } catch (error) {
      if (error instanceof OutboundError || error instanceof DnsProviderError || error instanceof MailError)
        throw invalid(path, error.message)
      throw error
    }
  }
  return {
    dnsProvider: (descriptor, config) =>
      asking('config', () =>
        descriptor.create(config, { client, policy }).check(AbortSignal.timeout(PROVIDER_TIMEOUT_MS)),
      ),
    acme: (acme, asks) =>
      asking('directory_url', async () => {
        if (acme.eab !== null && !acme.eab.hmac_key) throw invalid('eab.hmac_key', 'is required.')
        const url = URL.canParse(acme.directory_url) ? new URL(acme.directory_url) : undefined
        // On the operator's own network, of hosts that the operator has named, it may be plain HTTP.
        if (
          url?.protocol !== 'https:' &&
          !(url?.protocol === 'http:' && policy.isListed(url.hostname, Number(url.port || 80)))
        )
          throw invalid('directory_url', 'must be an address that begins with https://.')
        if (!asks) return
        const directory = await readDirectory(client, acme.directory_url)
        // Its answer says where accounts and orders are made: no way to aim this server at its own network
        // either.
        for (const url of [directory.newNonce, directory.newAccount, directory.newOrder]) policy.checkUrl(url)
        if (directory.meta?.externalAccountRequired && acme.eab === null)
          throw invalid(
            'eab',
            'is required by this authority: it gives out a key identifier and an HMAC key.',
          )
      }),
    async dns({ resolvers }) {
      for (const [index, text] of resolvers.entries()) {
        const { address, port } = parseResolver(text)
        await asking(`resolvers.${index}`, async () => {
          policy.checkHost(address, port)
          // What it answers does not matter: one that serves its own zones only refuses a name that is not
          // among them.
          const answer = await ports.dns.ask(ports.probe_name(), 'A', text)
          if (answer.outcome === 'failed' && !ANSWERS.has(answer.reason))
            throw invalid(`resolvers.${index}`, `${answer.message}.`)
        })
      }
    },
    smtp: (smtp, to) =>
      asking('host', async () => {
        policy.checkHost(smtp.host, smtp.port)
        if (smtp.security === 'none' && smtp.username && !policy.isListed(smtp.host, smtp.port))
          throw invalid(
            'security',
            'must be tls or starttls: the password would cross the internet in the clear.',
          )
        await ports.mailBy(smtp).send({
          to,
          subject: `Test mail of ${ports.installation()}`,
          text: `${ports.installation()} can send mail through ${smtp.host}. Nothing else has to be done.\n`,
        })
      }),
  }
}
