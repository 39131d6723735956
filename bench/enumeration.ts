/**
 * Whether logins tell which addresses have an account: `npx node bench/enumeration.ts [--logins=300]`. The
 * built server with passwords at their full cost; logins of known and unknown addresses take turns in random
 * order, with half as many of disabled accounts and of accounts with a second factor among them. Each login
 * comes from a client address of its own, because one address has five a minute. In the end the one answer
 * without an account that a token could be guessed at: accepting an invitation. Chance alone finds a
 * difference in one comparison of a hundred, so the whole is done again when one is found, once: a difference
 * that is there is found both times.
 */
import { createHash, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { newId } from '#server/kernel/ids'
import { createSecrets, loadMasterKey } from '#server/kernel/secrets'
import { seedContext } from '#server/identity/two-factor'
import { ADMIN } from '#test/support/portreeve'
import { mannWhitney } from '#test/support/statistics'
import { createReport, median, ms, numberOptions } from './support/report.ts'
import { spawnServer } from './support/server.ts'

const APART_MS = 5
const SIGNIFICANT = 0.01
const ROUNDS = 2
/** An account must wait after ten failures in a row; each is asked half as often in one round. */
const ATTEMPTS_PER_ACCOUNT = 5
const WARM_UP = 10
/** Whatever of an answer differs between any two requests. */
const OWN_HEADERS = ['date', 'x-request-id']
const REFUSED = '401 INVALID_CREDENTIALS'
/** What is asked: known and unknown addresses twice as often as the others. */
const TURN = ['unknown', 'known', 'unknown', 'known', 'disabled', 'with a second factor'] as const
const INVITATIONS = ['unknown', 'expired'] as const
type Kind = (typeof TURN)[number] | `invitation ${(typeof INVITATIONS)[number]}`
interface Sample {
  took_ms: number
  answer: string
}

const options = numberOptions({ logins: 300 })
const turns = Math.ceil(options.logins / 2)
const report = createReport(
  `${turns * 2} logins each of known and unknown addresses, passwords at their full cost`,
)
const data_directory = mkdtempSync(join(tmpdir(), 'ptr-enumeration-'))
const secret_key = randomBytes(32).toString('hex')
const agent = new Agent({ keepAlive: true, maxSockets: 1 })
let peers = 0

const server = await spawnServer(data_directory, {
  DOCKER_HOST: 'unix:///nonexistent/docker.sock',
  PORTREEVE_TRUSTED_PROXIES: '127.0.0.1',
  PORTREEVE_SECRET_KEY: secret_key,
})
try {
  await server.firstAnswer('/healthz')
  await server.login()
  let found = await round(0)
  for (let again = 1; again < ROUNDS && differences(found).length > 0; again += 1) {
    report.figure('found once, measured again', differences(found).join('; '))
    found = await round(again)
  }
  emit(found)
} finally {
  await server.stop()
  rmSync(data_directory, { recursive: true, force: true })
}
report.end()

/** New accounts and invitations, then all that is measured. */
async function round(number: number): Promise<Map<Kind, Sample[]>> {
  const accounts = withDb((db) => fill(db, number))
  const found = new Map<Kind, Sample[]>()
  const ask = async (kind: Kind, path: string, body: object) =>
    found.set(kind, [...(found.get(kind) ?? []), await post(path, body)])
  for (let n = 0; n < WARM_UP; n += 1)
    await post('/api/auth/login', { email: `warm-up-${n}@example.test`, password: 'wrong' })
  for (let turn = 0; turn < turns; turn += 1) {
    const asked = { unknown: 0, known: 0, disabled: 0, 'with a second factor': 0 }
    for (const kind of shuffled(TURN)) {
      const attempt = kind === 'unknown' || kind === 'known' ? turn * 2 + (asked[kind] += 1) - 1 : turn
      // Whoever knows the password of a disabled account is told no more than others.
      const password = kind === 'disabled' && turn % 2 === 0 ? ADMIN.password : 'wrong horse battery staple'
      await ask(kind, '/api/auth/login', {
        email: accounts.email(kind, Math.floor(attempt / ATTEMPTS_PER_ACCOUNT)),
        password,
      })
    }
  }
  for (let n = 0; n < turns; n += 1)
    for (const kind of shuffled(INVITATIONS))
      await ask(`invitation ${kind}`, '/api/auth/invitations/accept', {
        token: accounts.token(kind, n),
        name: 'Ada',
        password: ADMIN.password,
      })
  const right = await post('/api/auth/login', {
    email: accounts.email('with a second factor', 0),
    password: ADMIN.password,
  })
  if (!right.answer.startsWith('401 TOTP_REQUIRED'))
    throw new Error(`The right password of an account with a second factor was answered ${right.answer}`)
  return found
}

/** Accounts with the password of the administrator, and invitations that have expired. */
function fill(db: Database.Database, number: number) {
  const secrets = createSecrets(loadMasterKey('', secret_key, true))
  const password_hash = db.prepare('SELECT password_hash FROM users WHERE email = ?').pluck().get(ADMIN.email)
  const email = (kind: string, n: number) => `${kind.replaceAll(' ', '-')}-${number}-${n}@example.test`
  const token = (kind: string, n: number) =>
    createHash('sha256').update(`${kind} ${number} ${n}`).digest('base64url')
  const at = new Date().toISOString()
  const user = db.prepare(
    `INSERT INTO users (id, email, name, role, status, password_hash, totp_seed, created_at, updated_at) VALUES (?, ?, 'Ada', 'member', ?, ?, ?, ?, ?)`,
  )
  const invitation = db.prepare(
    `INSERT INTO invitations (id, email, role, projects, token_hash, invited_by, created_at, expires_at) VALUES (?, ?, 'member', '[]', ?, ?, ?, ?)`,
  )
  for (const kind of ['known', 'disabled', 'with a second factor']) {
    for (let n = 0; n <= (turns * 2) / ATTEMPTS_PER_ACCOUNT; n += 1) {
      const id = newId('usr')
      const seed =
        kind === 'with a second factor'
          ? secrets.seal('JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP', seedContext(id, 'totp_seed'))
          : null
      user.run(id, email(kind, n), kind === 'disabled' ? 'disabled' : 'active', password_hash, seed, at, at)
    }
  }
  const admin_id = db.prepare('SELECT id FROM users WHERE email = ?').pluck().get(ADMIN.email)
  for (let n = 0; n < turns; n += 1)
    invitation.run(
      newId('inv'),
      email('invited', n),
      createHash('sha256').update(token('expired', n)).digest('base64url'),
      admin_id,
      at,
      '2020-01-01T00:00:00.000Z',
    )
  return { email, token }
}

function withDb<T>(work: (db: Database.Database) => T): T {
  const db = new Database(join(data_directory, 'portreeve.db'), { timeout: 10_000 })
  try {
    return db.transaction(() => work(db))()
  } finally {
    db.close()
  }
}

function shuffled<T>(values: readonly T[]): T[] {
  return values
    .map((value) => ({ value, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ value }) => value)
}

/** One POST from a client address of its own on the one kept-alive connection. */
function post(path: string, body: object): Promise<Sample> {
  const text = JSON.stringify(body)
  peers += 1
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'x-forwarded-for': `198.${18 + (peers >> 16)}.${(peers >> 8) & 255}.${peers & 255}`,
  }
  return new Promise((done, fail) => {
    const began = performance.now()
    request(`${server.url}${path}`, { agent, method: 'POST', headers }, (response) => {
      const chunks: Buffer[] = []
      response
        .on('data', (chunk: Buffer) => chunks.push(chunk))
        .once('error', fail)
        .once('end', () => {
          const took_ms = performance.now() - began
          const answer = Buffer.concat(chunks).toString()
          const { code } = (JSON.parse(answer) as { error?: { code: string } }).error ?? {}
          const own = Object.entries(response.headers).filter(([name]) => !OWN_HEADERS.includes(name))
          done({
            took_ms,
            answer: `${response.statusCode} ${code ?? ''} ${answer} ${JSON.stringify(own)}`,
          })
        })
    })
      .once('error', fail)
      .end(text)
  })
}

function timesOf(found: Map<Kind, Sample[]>, kind: Kind): number[] {
  return found.get(kind)!.map(({ took_ms }) => took_ms)
}

/** Each kind against unknown addresses, or unknown invitations. */
function comparisons(found: Map<Kind, Sample[]>) {
  return [...found.keys()]
    .filter((kind) => !kind.endsWith('unknown'))
    .map((kind) => {
      const base: Kind = kind.startsWith('invitation') ? 'invitation unknown' : 'unknown'
      const [times, base_times] = [timesOf(found, kind), timesOf(found, base)]
      return {
        kind,
        base,
        apart_ms: Math.abs(median(times) - median(base_times)),
        p: mannWhitney(times, base_times),
      }
    })
}
function differences(found: Map<Kind, Sample[]>): string[] {
  return comparisons(found)
    .filter(({ p, apart_ms }) => p <= SIGNIFICANT || apart_ms >= APART_MS)
    .map(({ kind, p, apart_ms }) => `${kind}: ${ms(apart_ms)}, p ${p.toFixed(4)}`)
}

function emit(found: Map<Kind, Sample[]>): void {
  for (const base of ['unknown', 'invitation unknown'] as const) {
    const answers = new Set(
      [...found]
        .filter(([kind]) => kind.startsWith('invitation') === base.startsWith('invitation'))
        .flatMap(([, samples]) => samples.map(({ answer }) => answer)),
    )
    const expected = base === 'unknown' ? REFUSED : '404 NOT_FOUND'
    report.check(
      `${base === 'unknown' ? 'logins' : 'invitations'}: one answer, status, body and headers`,
      answers.size === 1 && [...answers][0]!.startsWith(expected),
      answers.size === 1 ? `yes, ${expected}` : `no, ${answers.size} answers`,
    )
    report.figure(`${base}: median of ${found.get(base)!.length}`, ms(median(timesOf(found, base))))
  }
  for (const { kind, base, apart_ms, p } of comparisons(found)) {
    report.check(
      `${kind} against ${base}: medians`,
      apart_ms < APART_MS,
      `${ms(apart_ms)} apart (${found.get(kind)!.length})`,
    )
    report.check(
      `${kind} against ${base}: Mann-Whitney p above ${SIGNIFICANT}`,
      p > SIGNIFICANT,
      p.toFixed(3),
    )
  }
}
