import { readFileSync } from 'node:fs'
import { rootCertificates } from 'node:tls'
import type { AuditTrail } from '#server/kernel/audit'
import { ConfigError } from '#server/kernel/config'
import type { Events } from '#server/kernel/events'
import type { DnsProviderDescriptor } from '#server/platform/dns-providers/provider'
import type { Dns } from '#server/platform/dns/dns'
import type { Mail, SmtpSettings } from '#server/platform/mail/mail'
import { createSmtpMail } from '#server/platform/mail/smtp'
import { createGuardedClient } from '#server/platform/outbound/client'
import { createDial } from '#server/platform/outbound/dial'
import type { OutboundPolicy } from '#server/platform/outbound/outbound'
import type { Kernel } from '#server/services'
import { createSettingsChecks } from '#server/settings/checks'
import { createSettings, type SettingsOptions, type SettingsService } from '#server/settings/service'

export interface InstallationParts extends Pick<SettingsOptions, 'changed' | 'in_use'> {
  kernel: Kernel
  audit: AuditTrail
  events: Events
  policy: OutboundPolicy
  providers: readonly DnsProviderDescriptor[]
  dns: Dns
}

/**
 * The built-in authorities and those of the operator's file; undefined without a file, which means the
 * built-in ones. Throws ConfigError for a file that holds none.
 */
export function authoritiesOf(ca_file: string | undefined): string[] | undefined {
  if (ca_file === undefined) return undefined
  try {
    const own = readFileSync(ca_file, 'utf8')
    if (own.includes('-----BEGIN CERTIFICATE-----')) return [...rootCertificates, own]
  } catch (error) {
    throw new ConfigError(
      `SSL_CERT_FILE must be a file that this user may read: ${(error as Error).message}.`,
      {
        cause: error,
      },
    )
  }
  throw new ConfigError(`SSL_CERT_FILE must be a file with certificates in PEM; ${ca_file} holds none.`)
}

/** What an administrator sets for the whole installation, and mail, which follows it live. */
export function createInstallation({
  kernel: { config, db, clock, secrets },
  audit,
  events,
  policy,
  providers,
  dns,
  ...rest
}: InstallationParts): { settings: SettingsService; mail: Mail } {
  const ca = authoritiesOf(config.ca_file)
  const dial = createDial(policy)
  const mailBy = (smtp: () => SmtpSettings | null, isConfigured: () => boolean) =>
    createSmtpMail({ isConfigured, settings: smtp, dial, ...(ca ? { ca } : {}) })
  const settings: SettingsService = createSettings({
    db,
    clock,
    secrets,
    audit,
    events,
    build_concurrency: config.build_concurrency,
    providers,
    checks: createSettingsChecks({
      client: createGuardedClient(policy, ca ? { ca } : {}),
      policy,
      dns,
      mailBy: (smtp) =>
        mailBy(
          () => smtp,
          () => true,
        ),
      probe_name: () => rest.in_use().base_domain,
      installation: () => settings.server().name,
    }),
    ...rest,
  })
  return { settings, mail: mailBy(settings.smtp, settings.hasSmtp) }
}
