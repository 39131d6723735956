/**
 * What proving and authorising a caller costs per request: `npx node bench/authorization.ts`. First the
 * functions alone, in microseconds for each way to authenticate; then requests per second of a list over
 * HTTP, against the same list that asks nobody who they are. Fails above the bound of 200 microseconds.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAudit } from '#server/audit/service'
import { createChanges } from '#server/http/changes'
import type { HttpPorts } from '#server/http/context'
import { createIdempotency } from '#server/http/idempotency'
import { createWatch } from '#server/http/standing'
import { createEntrance, createRequestTurns } from '#server/http/turns'
import { createIdentity } from '#server/identity/service'
import { authorize, type Actor } from '#server/kernel/access'
import { systemClock } from '#server/kernel/clock'
import { loadConfig } from '#server/kernel/config'
import { openDb } from '#server/kernel/db'
import { createEvents } from '#server/kernel/events'
import { createHeldBytes } from '#server/kernel/held-bytes'
import { createLog } from '#server/kernel/log'
import { migrate } from '#server/kernel/migrate'
import { createSecrets } from '#server/kernel/secrets'
import { NO_MAIL } from '#server/platform/mail/mail'
import { createProjects } from '#server/projects/service'
import { startTestServer, type TestServer } from '#test/support/http-server'
import { readRoutes } from '#test/support/routes'
import { readMigrations } from '../scripts/read-migrations.ts'
import { createReport, median } from './support/report.ts'

const CALLS = 20_000
const ROUNDS = 5
const BOUND_US = 200
const CONNECTIONS = 8
const HTTP_REQUESTS = 4000
const HTTP_ROUNDS = 7
const ADMIN = { email: 'root@example.test', password: 'violet harbour eleven kites' }
const SOURCE = {
  address: '127.0.0.1',
  id: 'req_bench',
  user_agent: 'bench',
  method: 'GET',
  path: '/',
  secure: false,
}

const directory = mkdtempSync(join(tmpdir(), 'portreeve-bench-'))
const db = openDb(join(directory, 'portreeve.db'))
migrate(db, readMigrations(join(import.meta.dirname, '..')))
const clock = systemClock
const log = createLog('text', 'error')
const config = loadConfig({
  PORTREEVE_DATA_DIR: directory,
  PORTREEVE_ADMIN_EMAIL: ADMIN.email,
  PORTREEVE_ADMIN_PASSWORD: ADMIN.password,
})
const secrets = createSecrets(Buffer.alloc(32, 1))
const audit = createAudit({ db, clock })
const projects = createProjects({
  db,
  clock,
  audit,
  events: createEvents(db, clock, log),
  people: () => identity.people,
  defaultQuotas: () => ({}),
  resources: () => [],
  forget: () => {},
  removeNetwork: () => undefined,
  share: () => ({ memory_bytes: 0, cpus: 0 }),
})
const identity: ReturnType<typeof createIdentity> = createIdentity({
  config,
  db,
  clock,
  log,
  secrets,
  audit,
  events: createEvents(db, clock, log),
  projects,
  mail: NO_MAIL,
  public_url: () => '',
  chosen_url: () => undefined,
  settings: () => ({ name: 'Portreeve', owners_may_invite: false }),
})
await identity.ensureAdministrator()
const project_id = projects.default()

const { token, cookie, session_id } = await identity.login(ADMIN, SOURCE)
const actor: Actor = await identity.authenticate(
  { authorization: `Bearer ${token}`, mutating: false },
  SOURCE,
  {
    allow_stale_password: false,
  },
)
for (let i = 0; i < 20; i += 1) projects.create(actor, { name: `project ${i}`, description: '' })
const { key } = await identity.api_keys.create(actor, { name: 'bench', scope: 'full' })
const { csrf_token } = identity.sessions.csrfToken({ ...actor, credential_id: session_id })
const proofs = {
  bearer: { authorization: `Bearer ${token}`, mutating: false },
  'api key': { api_key: key, mutating: false },
  cookie: { session: cookie, mutating: false },
  'cookie with CSRF token': { session: cookie, csrf_token, mutating: true },
}

const report = createReport('The functions alone')
for (const [way, proof] of Object.entries(proofs)) {
  const rounds: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const started = process.hrtime.bigint()
    for (let i = 0; i < CALLS; i += 1)
      authorize(await identity.authenticate(proof, SOURCE, { allow_stale_password: false }), 'developer', {
        project_id,
        noun: 'project',
      })
    rounds.push(Number(process.hrtime.bigint() - started) / 1000 / CALLS)
  }
  const median_us = median(rounds)
  report.check(
    way,
    median_us < BOUND_US,
    `${median_us.toFixed(1)} us per request, ${(median_us / BOUND_US).toFixed(2)} of the bound`,
  )
}

/** A list of 20 projects over HTTP; `authenticate` is the only thing in which the servers differ. */
const route = readRoutes().filter(({ path, method }) => path === '/api/projects' && method === 'get')
const held = { of_one: 8 * 1024 * 1024, of_all: 16 * 1024 * 1024, refusal: 'Too many.' }
const serve = (authenticate: HttpPorts['http']['authenticate']) => {
  const http: HttpPorts['http'] = {
    log,
    authenticate,
    locate: () => undefined,
    cors_origins: () => [],
    default_project: () => project_id,
    idempotency: createIdempotency(db, clock, secrets),
    bodies: createHeldBytes(held),
    answers: createHeldBytes(held),
    watch: createWatch(db, clock),
    enter: createEntrance(),
    turn: createRequestTurns(),
    unlocked: () => undefined,
    changes: createChanges(clock),
    refused: () => undefined,
    client: identity.client,
    cameByEdge: () => undefined,
    refresh: ({ user_id, method, credential_id, address, request_id }) =>
      identity.actorOf({ user_id, method, credential_id }, { address, id: request_id }),
    onRevocation: (listener) => identity.revocations.subscribe(({ user_id }) => listener(user_id)),
  }
  return startTestServer(route, { projects, http })
}
const open = await serve(() => actor)
const guarded = await serve(identity.authenticate)
const ways: [string, TestServer, Record<string, string>][] = [
  ['nobody is asked', open, {}],
  ['bearer', guarded, { Authorization: `Bearer ${token}` }],
  ['api key', guarded, { 'X-API-Key': key }],
  ['cookie', guarded, { Cookie: `session=${cookie}` }],
]

/**
 * Requests per second over connections that stay open, each with one request at a time. Every answer has the
 * same length.
 */
async function requestsPerSecond(
  server: TestServer,
  headers: Record<string, string>,
  count: number,
): Promise<number> {
  const request = `GET /api/projects?per_page=20 HTTP/1.1\r\nHost: bench\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`
  const first = await server.speak(request.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
  if (!first.startsWith('HTTP/1.1 200')) throw new Error(first)
  const body_bytes = Buffer.byteLength(first.slice(first.indexOf('\r\n\r\n') + 4))
  const started = process.hrtime.bigint()
  await Promise.all(
    Array.from(
      { length: CONNECTIONS },
      () =>
        new Promise<void>((done, fail) => {
          let left = count / CONNECTIONS
          let answer = ''
          const socket = connect(Number(new URL(server.url).port), '127.0.0.1', () => socket.write(request))
            .setEncoding('latin1')
            .on('error', fail)
            .on('data', (part: string) => {
              answer += part
              const head = answer.indexOf('\r\n\r\n')
              if (head < 0 || answer.length - head - 4 < body_bytes) return
              answer = ''
              left -= 1
              if (left > 0) return void socket.write(request)
              socket.destroy()
              done()
            })
        }),
    ),
  )
  return count / (Number(process.hrtime.bigint() - started) / 1e9)
}

const rates = new Map<string, number[]>(ways.map(([way]) => [way, []]))
for (let round = 0; round <= HTTP_ROUNDS; round += 1) {
  // The first round warms up. Ways take turns, so that a busy moment of the machine meets all of them.
  for (const [way, server, headers] of ways) {
    const rate = await requestsPerSecond(server, headers, round === 0 ? 500 : HTTP_REQUESTS)
    if (round > 0) rates.get(way)!.push(rate)
  }
}
console.log(`A list of 20 over HTTP, ${CONNECTIONS} connections, client and server in one process`)
const base = median(rates.get('nobody is asked')!)
for (const [way] of ways) {
  const rate = median(rates.get(way)!)
  const cost_us = 1e6 / rate - 1e6 / base
  if (rate === base) report.figure(way, `${rate.toFixed(0)} requests per second`)
  else
    report.check(
      way,
      cost_us < BOUND_US,
      `${rate.toFixed(0)} requests per second, ${(rate / base).toFixed(2)} of it, ${cost_us.toFixed(0)} us per request`,
    )
}
await Promise.all([open.close(), guarded.close()])
db.close()
rmSync(directory, { recursive: true, force: true })
report.end()
