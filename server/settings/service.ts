import { own } from '#server/kernel/own'
import * as v from 'valibot'
import type { Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { ApiError, conflict, invalid } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import type { Secrets } from '#server/kernel/secrets'
import type { DnsProviderDescriptor } from '#server/platform/dns-providers/provider'
import type { SmtpSettings } from '#server/platform/mail/mail'
import type { SettingsChecks } from './checks.ts'
import { createSettingsRepository } from './repository.ts'
import type {
  AcmeChange,
  AcmeSettings,
  DnsChange,
  DnsProviderChange,
  DnsProviderSettings,
  DnsSettings,
  DomainChange,
  DomainSettings,
  Settings,
  SmtpChange,
  SmtpSection,
} from './schema.ts'
import type { ServerSettings, ServerSettingsChange } from './server-schema.ts'
import {
  changedBy,
  defaultSections,
  inside,
  masked,
  type SecretValues,
  SECTION_NAMES,
  type SectionName,
  type Sections,
  secretsAfter,
  withValues,
} from './sections.ts'

export interface SettingsOptions {
  db: Db
  clock: Clock
  secrets: Secrets
  audit: AuditTrail
  events: Events
  /** Builds at once, as the environment says. */
  build_concurrency: number
  providers: readonly DnsProviderDescriptor[]
  checks: SettingsChecks
  /** What holds now, for answers. */
  in_use(): Settings['in_use']
  /**
   * Hears of a change in its transaction: what it writes is there together with the change, or not at all.
   * Throws when others would not survive the change.
   */
  changed: Partial<{ [N in SectionName]: (after: Sections[N], before: Sections[N]) => void }>
}

interface Stored {
  value: Sections[SectionName]
  sealed: string | null
  updated_at: string | null
  opened?: unknown
}
export const settingsContext = (section: string) => `settings/secrets/${section}`
export const DEFAULT_PORTS = { tls: 465, starttls: 587, none: 25 } as const

/**
 * The settings of the installation. They are read from memory, by value, at each use, so that a change holds
 * at once.
 */
export function createSettings(options: SettingsOptions) {
  const { db, clock, secrets, audit, events, checks } = options
  const repository = createSettingsRepository(db)
  const defaults = defaultSections(options.build_concurrency)
  let known: Map<SectionName, Stored> | undefined

  const load = (): Map<SectionName, Stored> => {
    const rows = new Map(repository.all().map((row) => [row.section, row]))
    return new Map(
      SECTION_NAMES.map((name) => {
        const row = rows.get(name)
        // Defaults below what is stored, so that a field of a later version has a value.
        return [
          name,
          {
            value: {
              ...defaults[name],
              ...(row ? (JSON.parse(row.value) as object) : {}),
            } as Sections[SectionName],
            sealed: row?.secrets ?? null,
            updated_at: row?.updated_at ?? null,
          },
        ]
      }),
    )
  }
  const stored = (name: SectionName): Stored => (known ??= load()).get(name)!
  const openSecrets = (name: SectionName): SecretValues => {
    const { sealed } = stored(name)
    return sealed === null ? {} : (JSON.parse(secrets.open(sealed, settingsContext(name))) as SecretValues)
  }
  const view = <N extends SectionName>(name: N): Sections[N] =>
    structuredClone(stored(name).value) as Sections[N]
  /** The section with its secrets. Throws SecretUnreadableError, never answers an empty secret. */
  const full = <N extends SectionName>(name: N): Sections[N] => {
    const entry = stored(name)
    entry.opened ??= withValues(entry.value, openSecrets(name))
    return entry.opened as Sections[N]
  }

  const write = <N extends SectionName>(
    actor: Actor,
    name: N,
    from: Stored,
    value: Sections[N],
    held: SecretValues,
    replaced: readonly string[],
  ): Sections[N] => {
    try {
      db.tx(() => {
        known = undefined
        const now = stored(name)
        if (now.sealed !== from.sealed || JSON.stringify(now.value) !== JSON.stringify(from.value))
          throw conflict('Somebody else changed this section meanwhile. Read it and send the change again.')
        const before = view(name)
        const after = masked(value, Object.keys(held))
        repository.put({
          section: name,
          value: JSON.stringify(after),
          updated_at: clock.iso(),
          secrets:
            Object.keys(held).length === 0 ? null : secrets.seal(JSON.stringify(held), settingsContext(name)),
        })
        known = undefined
        audit.record(actor, {
          action: 'settings.update',
          resource_type: 'settings',
          resource_id: name,
          project_id: null,
          before: { ...before },
          after: { ...after, ...(replaced.length > 0 ? { replaced_secrets: replaced } : {}) },
        })
        events.append({
          type: 'settings.updated',
          actor_id: actor.user_id || null,
          payload: { section: name },
        })
        ;(options.changed[name] as ((after: Sections[N], before: Sections[N]) => void) | undefined)?.(
          view(name),
          before,
        )
      })
      return view(name)
    } catch (error) {
      // What was read in the transaction is not what is stored.
      known = undefined
      throw error
    }
  }

  /**
   * Keeps a section as it is to be: the secrets that stay are added, the whole is tested, then kept unless it
   * was changed meanwhile.
   */
  const replace = async <N extends SectionName>(
    actor: Actor,
    name: N,
    sent: Sections[N],
    paths: readonly string[],
    test: (candidate: Sections[N]) => Promise<void> | void,
  ): Promise<Sections[N]> => {
    const from = stored(name)
    const before = { value: from.value, secrets: () => openSecrets(name) }
    const held = secretsAfter(name, paths, sent, before)
    const candidate = withValues(sent, {
      ...Object.fromEntries(paths.map((path) => [path, null])),
      ...held,
    })
    const same = from.sealed === null ? {} : openSecretsOrNone(name)
    await test(candidate)
    return write(
      actor,
      name,
      from,
      candidate,
      held,
      Object.keys(held).filter((path) => own(same, path) !== own(held, path)),
    )
  }
  /** A stored secret that cannot be read any more counts as replaced by the new one. */
  const openSecretsOrNone = (name: SectionName): SecretValues => {
    try {
      return openSecrets(name)
    } catch {
      return {}
    }
  }

  const changeProvider = async (actor: Actor, change: DnsProviderChange): Promise<DnsProviderSettings> => {
    const before = view('dns_provider')
    const provider = change.provider === undefined ? before.provider : change.provider
    if (change.provider === undefined && provider === null && change.config !== undefined)
      throw invalid('provider', 'is required: none is set yet.')
    if (provider === null)
      return replace(actor, 'dns_provider', { provider: null, config: {} }, [], () => undefined)
    const sent = {
      provider,
      config: { ...(provider === before.provider ? before.config : {}), ...change.config },
    }
    const descriptor = options.providers.find(({ name }) => name === sent.provider)
    if (!descriptor)
      throw invalid('provider', `must be ${options.providers.map(({ name }) => name).join(' or ')}, or null.`)
    const paths = descriptor.secrets.map((key) => `config.${key}`)
    const held = secretsAfter('dns_provider', paths, sent, {
      value: stored('dns_provider').value,
      secrets: () => openSecrets('dns_provider'),
    })
    const given = Object.entries(withValues(sent, held).config).filter(([, value]) => value !== null)
    const parsed = v.safeParse(descriptor.config, Object.fromEntries(given))
    if (!parsed.success) {
      const details = parsed.issues.slice(0, 20).map((issue) => ({
        path: `config.${v.getDotPath(issue) ?? ''}`.replace(/\.$/, '').slice(0, 200),
        message: issue.message,
      }))
      throw new ApiError('VALIDATION_ERROR', `${details[0]!.path}: ${details[0]!.message}`, details)
    }
    const config = parsed.output as Record<string, unknown>
    return replace(
      actor,
      'dns_provider',
      { provider: descriptor.name, config },
      paths.filter((path) => inside({ config }, path) !== undefined),
      () => checks.dnsProvider(descriptor, config),
    )
  }

  return {
    /** Everything, secrets masked. */
    all(): Settings {
      const sections = Object.fromEntries(
        SECTION_NAMES.map((name) => [name, view(name)]),
      ) as unknown as Sections
      const updated_at = Object.fromEntries(
        SECTION_NAMES.map((name) => [name, stored(name).updated_at]),
      ) as Settings['updated_at']
      return { ...sections, in_use: options.in_use(), updated_at }
    },
    changeServer: (
      actor: Actor,
      { build_concurrency, ...change }: ServerSettingsChange,
    ): Promise<ServerSettings> =>
      replace(
        actor,
        'server',
        changedBy(view('server'), {
          ...change,
          build_concurrency: build_concurrency === null ? options.build_concurrency : build_concurrency,
        }),
        [],
        () => undefined,
      ),
    changeDomain: (actor: Actor, change: DomainChange): Promise<DomainSettings> =>
      replace(actor, 'domain', changedBy(view('domain'), change), [], () => undefined),
    changeProvider,
    /** The authority is asked only about what it has a say in, and only when that changes. */
    changeAcme(actor: Actor, { skip_test = false, ...change }: AcmeChange): Promise<AcmeSettings> {
      const before = view('acme')
      const after = changedBy(before, change)
      const is_about_it =
        after.directory_url !== before.directory_url ||
        JSON.stringify(after.eab) !== JSON.stringify(before.eab)
      return replace(actor, 'acme', after, ['eab.hmac_key'], (candidate) =>
        checks.acme(candidate, is_about_it && !skip_test),
      )
    },
    changeDns: (actor: Actor, change: DnsChange): Promise<DnsSettings> =>
      replace(actor, 'dns', changedBy(view('dns'), change), [], checks.dns),
    changeSmtp(actor: Actor, { test_to, ...change }: SmtpChange): Promise<SmtpSection> {
      const sent = changedBy(view('smtp'), change)
      if (
        sent.host === null &&
        change.host === undefined &&
        [change.port, change.username, change.password].some((value) => value != null)
      )
        throw invalid('host', 'is required with a port, a user name or a password.')
      return replace(
        actor,
        'smtp',
        sent.host === null
          ? { ...sent, port: null, username: null, password: null }
          : { ...sent, port: sent.port ?? DEFAULT_PORTS[sent.security] },
        ['password'],
        async (candidate) => {
          const smtp = smtpOf(candidate)
          if (smtp) await checks.smtp(smtp, test_to ?? actor.email)
        },
      )
    },
    server: (): ServerSettings => full('server'),
    domain: (): DomainSettings => full('domain'),
    /** With `eab` only when both of its parts are there. */
    acme() {
      const { eab, ...rest } = full('acme')
      return { ...rest, eab: eab?.hmac_key ? { kid: eab.kid, hmac_key: eab.hmac_key } : null }
    },
    /** The provider with its secrets opened; null when there is none. */
    dnsProvider(): { provider: string; config: Record<string, unknown> } | null {
      const { provider, config } = full('dns_provider')
      return provider === null ? null : { provider, config }
    },
    dns: (): DnsSettings => full('dns'),
    smtp: (): SmtpSettings | null => smtpOf(full('smtp')),
    /** Whether a mail server is set; does not need its password. */
    hasSmtp: (): boolean => (stored('smtp').value as SmtpSection).host !== null,
  }
}
export type SettingsService = ReturnType<typeof createSettings>

/** The mail server that a section describes; null when mail is off. Throws 422 for what is missing. */
function smtpOf(section: SmtpSection): SmtpSettings | null {
  const { host, port, security, username, password, from } = section
  if (host === null) return null
  if (from === null) throw invalid('from', 'is required with a host.')
  if ((username === null) !== (password === null || password === undefined))
    throw invalid(
      username === null ? 'username' : 'password',
      'is required: user name and password go together.',
    )
  return {
    host,
    port: port ?? DEFAULT_PORTS[security],
    security,
    from,
    ...(username !== null && password ? { username, password } : {}),
  }
}
