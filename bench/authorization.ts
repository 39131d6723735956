/**
 * What proving and authorising a caller costs per request: `node bench/authorization.ts`. Prints microseconds per request for
 * each way to authenticate, and fails above the bound of 200.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAudit } from '#server/audit/service'
import { createIdentity } from '#server/identity/service'
import { authorize, type Actor } from '#server/kernel/access'
import { systemClock } from '#server/kernel/clock'
import { loadConfig } from '#server/kernel/config'
import { openDb } from '#server/kernel/db'
import { createEvents } from '#server/kernel/events'
import { createLog } from '#server/kernel/log'
import { migrate } from '#server/kernel/migrate'
import { createSecrets } from '#server/kernel/secrets'
import { NO_MAIL } from '#server/platform/mail/mail'
import { createProjects } from '#server/projects/service'
import { readMigrations } from '../scripts/read-migrations.ts'

const CALLS = 20_000
const ROUNDS = 5
const BOUND_US = 200
const ADMIN = { email: 'root@example.test', password: 'violet harbour eleven kites' }
const SOURCE = { address: '127.0.0.1', id: 'req_bench', user_agent: 'bench', method: 'GET', path: '/', secure: false }

const directory = mkdtempSync(join(tmpdir(), 'portreeve-bench-'))
const db = openDb(join(directory, 'portreeve.db'))
migrate(db, readMigrations(join(import.meta.dirname, '..')))
const clock = systemClock
const log = createLog('text', 'error')
const config = loadConfig({ PORTREEVE_DATA_DIR: directory, PORTREEVE_ADMIN_EMAIL: ADMIN.email, PORTREEVE_ADMIN_PASSWORD: ADMIN.password })
const audit = createAudit({ db, clock })
const projects = createProjects({ db, clock, audit, events: createEvents(db, clock, log), people: () => identity.people, resources: () => [] })
const identity: ReturnType<typeof createIdentity> = createIdentity({ config, db, clock, log, secrets: createSecrets(Buffer.alloc(32, 1)), audit, projects, mail: NO_MAIL, public_url: () => '', chosen_url: () => undefined, settings: () => ({ name: 'Portreeve', owners_may_invite: false }) })
await identity.ensureAdministrator()
const project_id = projects.default()

const { token, cookie, session_id } = await identity.login(ADMIN, SOURCE)
const actor: Actor = await identity.authenticate({ authorization: `Bearer ${token}`, mutating: false }, SOURCE, { allow_stale_password: false })
for (let i = 0; i < 20; i += 1) projects.create(actor, { name: `project ${i}`, description: '' })
const { key } = await identity.api_keys.create(actor, { name: 'bench', scope: 'full' })
const { csrf_token } = identity.sessions.csrfToken({ ...actor, credential_id: session_id })
const proofs = {
  bearer: { authorization: `Bearer ${token}`, mutating: false },
  'api key': { api_key: key, mutating: false },
  cookie: { session: cookie, mutating: false },
  'cookie with CSRF token': { session: cookie, csrf_token, mutating: true },
}

let worst = 0
for (const [way, proof] of Object.entries(proofs)) {
  const rounds: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const started = process.hrtime.bigint()
    for (let i = 0; i < CALLS; i += 1) authorize(await identity.authenticate(proof, SOURCE, { allow_stale_password: false }), 'developer', { project_id, noun: 'project' })
    rounds.push(Number(process.hrtime.bigint() - started) / 1000 / CALLS)
  }
  const median_us = rounds.sort((a, b) => a - b)[ROUNDS >> 1]!
  worst = Math.max(worst, median_us)
  process.stdout.write(`${way.padEnd(24)} ${median_us.toFixed(1).padStart(6)} us per request, ${(median_us / BOUND_US).toFixed(2)} of the bound\n`)
}
db.close()
rmSync(directory, { recursive: true, force: true })
if (worst > BOUND_US) process.exitCode = 1
