import type { AuditTrail } from '#server/kernel/audit'
import type { Events } from '#server/kernel/events'
import type { Kernel } from '#server/platform/base'
import type { DnsProviderDescriptor } from '#server/platform/dns-providers/provider'
import type { Dns } from '#server/platform/dns/dns'
import type { Mail, SmtpSettings } from '#server/platform/mail/mail'
import { createSmtpMail } from '#server/platform/mail/smtp'
import { createDial } from '#server/platform/outbound/dial'
import type { GuardedClient } from '#server/platform/outbound/client'
import type { OutboundPolicy } from '#server/platform/outbound/outbound'
import { createSettingsChecks } from '#server/settings/checks'
import { createSettings, type SettingsOptions, type SettingsService } from '#server/settings/service'

export interface InstallationParts extends Pick<SettingsOptions, 'changed' | 'in_use'>, Kernel {
  audit: AuditTrail
  events: Events
  policy: OutboundPolicy
  client: GuardedClient
  authorities: readonly string[] | undefined
  providers: readonly DnsProviderDescriptor[]
  dns: Dns
}

/** What an administrator sets for the whole installation, and mail, which follows it live. */
export function createInstallation({
  config,
  db,
  clock,
  secrets,
  audit,
  events,
  policy,
  client,
  authorities: ca,
  providers,
  dns,
  in_use,
  changed,
}: InstallationParts): { settings: SettingsService; mail: Mail } {
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
      client,
      policy,
      dns,
      mailBy: (smtp) =>
        mailBy(
          () => smtp,
          () => true,
        ),
      probe_name: () => in_use().base_domain,
      installation: () => settings.server().name,
    }),
    in_use,
    changed,
  })
  return { settings, mail: mailBy(settings.smtp, settings.hasSmtp) }
}
