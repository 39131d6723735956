import { createAudit } from '#server/audit/service'
import type { AcmeRules, VerifiedDomain } from '#server/certificates/ports'
import { covers } from '#server/certificates/schema'
import { type Certificates, createCertificates } from '#server/certificates/service'
import type { Actor } from '#server/kernel/access'
import { createEvents, type PlatformEvent } from '#server/kernel/events'
import { createJobs, type Jobs } from '#server/kernel/jobs/jobs'
import { createFakeAcme, type FakeAcme } from '#server/platform/acme/fake'
import { createFakeDns, type FakeDns } from '#server/platform/dns-providers/fake'
import { createFakeIngress, type FakeIngress } from '#server/platform/ingress/fake/fake'
import { createGuardedClient } from '#server/platform/outbound/client'
import { createOutboundPolicy } from '#server/platform/outbound/policy'
import { createTestKernel, type TestKernel } from '#test/support/kernel'

export const PROJECT = 'prj_00000000000000000001'
/** Certificates on fakes of everything around them, with a clock that stands still. */
export interface CertificateWorld {
  certificates: Certificates
  kernel: TestKernel
  jobs: Jobs
  acme: FakeAcme
  ingress: FakeIngress
  dns: FakeDns
  /** Verified domains; tests add and remove them. */
  domains: VerifiedDomain[]
  rules: AcmeRules
  served: string[]
  actor: Actor
  /** Whether a DNS provider is set up. */
  provider: { on: boolean }
  domain(hostname: string, changes?: Partial<VerifiedDomain>): VerifiedDomain
  /** Waits until no job is at work. */
  idle(): Promise<void>
  events(type?: string): PlatformEvent[]
  close(): Promise<void>
}

export function createWorld(): CertificateWorld {
  const kernel = createTestKernel()
  const { db, clock, log, secrets } = kernel
  for (const id of [PROJECT, 'prj_00000000000000000002'])
    db.sql('INSERT INTO projects (id, name, created_at, updated_at) VALUES (?, ?, ?, ?)').run(
      id,
      id,
      clock.iso(),
      clock.iso(),
    )
  const events = createEvents(db, clock, log)
  const jobs = createJobs({
    db,
    clock,
    log,
    pools: { certificate: 4 },
    pause: async () => undefined,
  })
  const [acme, ingress, dns] = [createFakeAcme({ now: clock.now }), createFakeIngress(), createFakeDns()]
  const policy = createOutboundPolicy({ allowed_private_hosts: [] })
  const provider = { on: false }
  const rules: AcmeRules = {
    directory_url: 'https://ca.test/directory',
    email: 'ada@example.com',
    eab: null,
    key_type: 'ecdsa',
    challenge: 'http-01',
  }
  const domains: VerifiedDomain[] = []
  const served: string[] = []
  const certificates = createCertificates({
    db,
    clock,
    log,
    secrets,
    events,
    jobs,
    audit: createAudit({ db, clock }),
    acme,
    ingress,
    random: () => 0.5,
    ports: {
      rules: () => rules,
      dnsProvider: () =>
        provider.on
          ? dns.descriptor.create(
              { zone: 'example.com', token: 'good' },
              { client: createGuardedClient(policy), policy },
            )
          : undefined,
      txtValues: async (name) => [...(dns.records.get(name) ?? [])],
      domains: (project_id) =>
        domains.filter((domain) => project_id === undefined || domain.project_id === project_id),
      domainsAt: (project_id, names) =>
        domains.filter(
          (domain) =>
            domain.project_id === project_id &&
            [domain.hostname, ...domain.aliases].some((own) => names.some((name) => covers(own, name))),
        ),
      domain: (id) => domains.find((domain) => domain.id === id),
      isThere: (id) => domains.some((domain) => domain.id === id),
      served: (ids) => void served.push(...ids),
    },
  })
  jobs.start()
  const actor: Actor = {
    user_id: 'usr_1',
    email: 'ada@example.test',
    name: 'ada',
    role: 'admin',
    scope: 'full',
    method: 'bearer',
    credential_id: 'ses_1',
    projects: new Map(),
    address: '127.0.0.1',
    request_id: '',
  }
  return {
    certificates,
    kernel,
    jobs,
    acme,
    ingress,
    dns,
    domains,
    rules,
    served,
    actor,
    provider,
    domain(hostname, changes = {}) {
      const domain: VerifiedDomain = {
        id: `dom_${hostname.replaceAll(/\W/g, '')}`,
        project_id: PROJECT,
        hostname,
        aliases: [],
        ssl_mode: 'acme',
        ...changes,
      }
      domains.push(domain)
      return domain
    },
    async idle() {
      await jobs.idle()
      await certificates.sync().catch(() => undefined)
    },
    events: (type) => events.after(0, type ? { types: [type] } : {}, 10_000),
    async close() {
      await jobs.stop()
      await ingress.close()
      kernel.dispose()
    },
  }
}

/** Where one job ends and the next begins; the clock moves this far first. */
export async function passAfter(world: CertificateWorld, duration_ms: number): Promise<void> {
  world.kernel.clock.advance(duration_ms)
  await world.certificates.pass()
  await world.idle()
}
