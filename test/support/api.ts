import type { Actor, PlatformRole, ProjectRole } from '#server/kernel/access'
import type { Db } from '#server/kernel/db'
import type { PlatformEvent } from '#server/kernel/events'
import type { Secrets } from '#server/kernel/secrets'
import { createFakeAcme, type FakeAcme } from '#server/platform/acme/fake'
import { createFakeCluster, type FakeCluster } from '#server/platform/cluster/fake'
import { createFakeDns, type FakeDns } from '#server/platform/dns/fake'
import { createFakeEngine, type FakeEngine } from '#server/platform/engine/fake/fake'
import { unseenHoles } from '#server/platform/engine/holes'
import { unwatched } from '#server/platform/engine/memory'
import { createFakeGit, type FakeGit } from '#server/platform/git/fake'
import { createFakeIngress, type FakeIngress } from '#server/platform/ingress/fake/fake'
import type { FindAddresses } from '#server/platform/dns/names'
import type { DnsProviderDescriptor } from '#server/platform/dns-providers/provider'
import type { EgressFilter } from '#server/platform/host-rules/egress'
import type { FakeMail } from '#server/platform/mail/fake'
import type { AnyModule } from '#server/kernel/module'
import { createServices, MODULES, type Services } from '#server/modules'
import type { TestClock } from './clock.ts'
import { type Answer, type MountedRoute, type SendOptions, startTestServer } from './http-server.ts'
import { createTestKernel, type TestKernel } from './kernel.ts'
import { fakeEgress } from './fake-egress.ts'
import { readRoutes } from './routes.ts'

/**
 * Callers that every test api knows. `owner`, `developer` and `viewer` are members of the default project;
 * `outsider` is in no project; `reader` is a platform viewer whose project role is owner; `read_key` and
 * `deploy_key` are narrowed keys of the owner.
 */
export const CALLERS = {
  admin: ['admin', undefined, 'full'],
  owner: ['member', 'owner', 'full'],
  developer: ['member', 'developer', 'full'],
  viewer: ['member', 'viewer', 'full'],
  outsider: ['member', undefined, 'full'],
  reader: ['viewer', 'owner', 'full'],
  read_key: ['member', 'owner', 'read'],
  deploy_key: ['member', 'owner', 'deploy'],
} as const satisfies Record<string, readonly [PlatformRole, ProjectRole | undefined, Actor['scope']]>
export type Caller = keyof typeof CALLERS
const TOKEN = /^Bearer test-(\w+)$/
const TEST_SESSION = /^ses_test(\w+)$/

export interface ApiOptions extends SendOptions {
  /** Who calls; nobody when absent. */
  as?: Caller
}
export interface TestApi {
  services: Services
  kernel: TestKernel
  fakes: {
    engine: FakeEngine
    cluster: FakeCluster
    git: FakeGit
    ingress: FakeIngress
    dns: FakeDns
    acme: FakeAcme
    clock: TestClock
  }
  url: string
  request<T = any>(method: string, path: string, options?: ApiOptions): Promise<Answer<T>>
  /** The same for one caller: `api.as('developer').post('/api/apps', { … })`. */
  as(
    caller: Caller,
  ): Record<
    'get' | 'post' | 'put' | 'delete',
    <T = any>(path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer<T>>
  >
  /** The caller as an actor, for calling services directly. */
  actor(caller: Caller): Actor
  /** Every event so far, oldest first; `since` skips those up to that position. */
  events(since?: number): PlatformEvent[]
  close(): Promise<void>
}
export interface TestApiOptions {
  /** Stands in for the filter on the engine's process, which is there by default. */
  egress?: EgressFilter
  environment?: Record<string, string>
  /** Whether jobs run; default true. Without, they stay queued. */
  jobs?: boolean
  /** Makes the schema, and rows that are there before the start; by default all migrations and none. */
  fill?: (db: Db, secrets: Secrets) => void
  /** Mail server; none when absent, as in a fresh installation. */
  mail?: FakeMail
  /** Cost of password hashes; that of the product when absent. */
  password_cost?: { logN: number; r: number; p: number } | undefined
  /** Finds the addresses of names that users gave; as this machine does when absent. */
  names?: FindAddresses
  /** DNS providers that can be set; the real ones when absent. */
  dns_providers?: readonly DnsProviderDescriptor[]
  /** What a domain that only exists in a test adds: its line in the list, its migrations and its routes. */
  domain?: {
    module: AnyModule
    migrations: readonly [name: string, sql: string][]
    routes: readonly MountedRoute[]
  }
}

function actorOf(caller: Caller, project_id: string): Actor {
  const [role, project, scope] = CALLERS[caller]
  return {
    user_id: `usr_test${caller.replaceAll('_', '').padEnd(16, '0')}`,
    email: `${caller}@example.test`,
    name: caller,
    role,
    scope,
    method: scope === 'full' ? 'bearer' : 'api_key',
    credential_id: `ses_test${caller}`,
    projects: new Map<string, ProjectRole>(project ? [[project_id, project]] : []),
    address: '127.0.0.1',
    request_id: '',
  }
}

/**
 * The callers as rows, so that they can be members, be listed and own what they create; none of them has a
 * password.
 */
function enrol(kernel: TestKernel, project_id: string): void {
  const at = kernel.clock.iso()
  for (const caller of Object.keys(CALLERS) as Caller[]) {
    const { user_id, email, name, role, projects } = actorOf(caller, project_id)
    kernel.db
      .sql(
        'INSERT INTO users (id, email, name, role, password_hash, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)',
      )
      .run(user_id, email, name, role, Buffer.alloc(96).toString('base64'), at, at)
    for (const [id, project_role] of projects)
      kernel.db.sql('INSERT INTO project_members VALUES (?, ?, ?, ?)').run(id, user_id, project_role, at)
  }
}

/**
 * The whole product in this process: every route, every service, a database in memory, and fakes of the world
 * outside.
 */
export async function createTestApi(options: TestApiOptions = {}): Promise<TestApi> {
  const kernel = createTestKernel(options.environment, options.fill)
  if (options.domain) for (const [, sql] of options.domain.migrations) kernel.db.raw.exec(sql)
  const engine = createFakeEngine()
  const fakes = {
    engine,
    cluster: createFakeCluster(engine.setMemberSilent),
    git: createFakeGit(),
    ingress: createFakeIngress(),
    dns: createFakeDns(),
    acme: createFakeAcme({ now: kernel.clock.now }),
    clock: kernel.clock,
  }
  const composed = createServices(
    kernel,
    {
      ...fakes,
      guard: {
        egress: options.egress ?? fakeEgress(),
        memory: { look: async () => {}, watch: unwatched },
        holes: { start() {}, stop() {}, watch: unseenHoles },
        checks: () => ({}),
        start() {},
        stop: async () => {},
      },
      ...(options.names ? { names: options.names } : {}),
      ...(options.mail ? { mail: options.mail } : {}),
      ...(options.password_cost ? { password_cost: options.password_cost } : {}),
      ...(options.dns_providers ? { dns_providers: options.dns_providers } : {}),
    },
    undefined,
    options.domain && ([...MODULES, options.domain.module] as unknown as typeof MODULES),
  )
  // Project roles as they are now, so that a test may add a caller to a project.
  const actor = (caller: Caller): Actor => {
    const static_actor = actorOf(caller, composed.http.default_project())
    return {
      ...static_actor,
      projects: new Map(
        composed.projects.rolesOf(static_actor.user_id).map(({ project_id, role }) => [project_id, role]),
      ),
    }
  }
  enrol(kernel, composed.http.default_project())
  const services: Services = {
    ...composed,
    http: {
      ...composed.http,
      authenticate(credentials, facts, rules) {
        const caller = TOKEN.exec(credentials.authorization ?? '')?.[1] as Caller | undefined
        return caller
          ? { ...actor(caller), address: facts.address, request_id: facts.id }
          : composed.http.authenticate(credentials, facts, rules)
      },
      refresh(who) {
        const caller = TEST_SESSION.exec(who.credential_id)?.[1] as Caller | undefined
        return caller ? { ...who, projects: actor(caller).projects } : composed.http.refresh(who)
      },
    },
  }
  const server = await startTestServer([...readRoutes(), ...(options.domain?.routes ?? [])], services)
  if (options.jobs ?? true) services.jobs.start()
  const request: TestApi['request'] = (method, path, { as, headers, ...rest } = {}) =>
    server.send(method, path, {
      ...rest,
      headers: { ...(as ? { authorization: `Bearer test-${as}` } : {}), ...headers },
    })
  return {
    services,
    kernel,
    fakes,
    request,
    actor,
    url: server.url,
    as(caller) {
      const method = (name: string) => (path: string, body?: unknown, headers?: Record<string, string>) =>
        request(name, path, { as: caller, body, headers })
      return {
        get: method('GET'),
        post: method('POST'),
        put: method('PUT'),
        delete: method('DELETE'),
      }
    },
    events: (since = 0) => services.events.after(since, {}, 100_000),
    async close() {
      await server.close()
      // Timers of what a test started would look into a database that is closed.
      await services.stop()
      await Promise.all([fakes.engine.close(), fakes.ingress.close()])
      kernel.dispose()
    },
  }
}
