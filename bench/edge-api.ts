import { Agent, get, type IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { randomBytes } from 'node:crypto'
import Database from 'better-sqlite3'
import { newId } from '#server/kernel/ids'
import { startDnsServer, type TestDnsServer } from '#test/support/dns-server'
import type { Portreeve } from '#test/support/portreeve'
import { checkMiddle, SIZES, timesOf } from './support/live-after.ts'
import { ms, type Report } from './support/report.ts'
import { onStage, type StagedApp } from './support/stage.ts'

const CHANGES = 30
/**
 * What an app and a project may have beside automatic names, with one left for the domain that comes and
 * goes.
 */
const OF_APP = 249
const OF_PROJECT = 499
/** Where names of this installation should lead; nothing is sent there. */
const ADDRESS = '203.0.113.7'
const RULES = 50
const LONGEST_MS = 10_000
/** A start that finds thousands of domains which the edge has never heard of. */
const FIRST_MS = 120_000

interface Visit {
  status: number
  headers: IncomingHttpHeaders
  is_kept: boolean
}
interface Scene {
  portreeve: Portreeve
  dns: TestDnsServer
  app: StagedApp
  domain_id: string
  hostname: string
  besides(): Promise<void>
}

/**
 * From sending a request to the API of the built server until the real edge answers by the new rule. A
 * running app has as many domains as one may have; the rest belongs to stopped apps of full projects. One
 * connection of another app stays open all the while: a change that cuts it ends the benchmark.
 */
export async function apiReport(report: Report): Promise<void> {
  const dns = await startDnsServer()
  try {
    await onStage(
      async ({ portreeve, app: create }) => {
        const [app, neighbour] = [await create('shop'), await create('neighbour')]
        const { status, body } = await portreeve.call('PUT', '/api/settings/dns', {
          resolvers: [dns.address],
          public_addresses: [ADDRESS],
        })
        if (status !== 200) throw new Error(JSON.stringify(body))
        for (const { count, limit_ms } of SIZES) {
          await portreeve.stop()
          const domain = fill(portreeve.data_directory, app.id, count)
          await portreeve.start()
          const took = await timesOf(1, () =>
            until(
              `the newest of ${count} domains`,
              async () =>
                (await visit(portreeve, domain.newest, '/')).status === (count > OF_APP ? 503 : 200),
              FIRST_MS,
            ),
          )
          report.figure(`${count} domains: all served after a start that finds them`, ms(took[0]!))
          const kept = new Agent({ keepAlive: true, maxSockets: 1 })
          await visit(portreeve, neighbour.host, '/', kept)
          const besides = async () => {
            const answer = await visit(portreeve, neighbour.host, '/', kept)
            if (answer.status !== 200 || !answer.is_kept)
              throw new Error(`The connection of another app was cut, or answered ${answer.status}.`)
          }
          await measure(report, `${count} domains`, limit_ms, {
            portreeve,
            dns,
            app,
            ...domain,
            besides,
          })
          kept.destroy()
        }
      },
      { PORTREEVE_ALLOWED_PRIVATE_HOSTS: dns.address },
    )
  } finally {
    await dns.close()
  }
}

async function measure(
  report: Report,
  name: string,
  limit_ms: number,
  { portreeve, dns, app, domain_id, hostname, besides }: Scene,
): Promise<void> {
  const change = async (method: string, path: string, body: unknown, expected: number): Promise<any> => {
    const answer = await portreeve.call(method, path, body)
    if (answer.status !== expected) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`)
    return answer.body.data
  }
  const put = (body: object) => change('PUT', `/api/domains/${domain_id}`, body, 200)
  const check = async (what: string, turn: (turn: number) => Promise<void>) => {
    const took = await timesOf(CHANGES, turn)
    await besides()
    checkMiddle(report, `${name}: ${what}`, took, limit_ms)
  }
  const seen = (path: string, holds: (answer: Visit) => boolean, host = hostname) =>
    until(`${host}${path}`, async () => holds(await visit(portreeve, host, path)))

  await check('headers and addresses of a domain', async (turn) => {
    await put({
      headers: { 'X-Turn': String(turn) },
      ip_allow: ['127.0.0.0/8', `10.${turn}.0.0/16`],
    })
    await seen('/', ({ status, headers }) => status === 200 && headers['x-turn'] === String(turn))
  })
  await check('maintenance on and off', async (turn) => {
    await put({ maintenance: turn % 2 === 0 })
    await seen('/', ({ status }) => status === (turn % 2 === 0 ? 503 : 200))
  })
  const rules: string[] = []
  for (let at = 0; at < RULES; at += 1)
    rules.push(
      (await change('POST', '/api/redirects', { domain_id, from: `/standing-${at}`, to: '/' }, 201)).id,
    )
  await check(`a redirect added to ${RULES}`, async (turn) => {
    rules.push(
      (await change('POST', '/api/redirects', { domain_id, from: `/old-${turn}`, to: `/new-${turn}` }, 201))
        .id,
    )
    await seen(`/old-${turn}`, ({ headers }) => headers.location === `/new-${turn}`)
  })
  await check('a redirect changed', async (turn) => {
    await change('PUT', `/api/redirects/${rules[RULES]}`, { to: `/newer-${turn}` }, 200)
    await seen('/old-0', ({ headers }) => headers.location === `/newer-${turn}`)
  })
  await check('a redirect taken away', async (turn) => {
    await change('DELETE', `/api/redirects/${rules[RULES + turn]}`, undefined, 200)
    await seen(`/old-${turn}`, ({ status }) => status === 200)
  })
  for (const id of rules.slice(0, RULES)) await change('DELETE', `/api/redirects/${id}`, undefined, 200)

  const added: string[] = []
  const added_ms: number[] = []
  const removed_ms: number[] = []
  for (let turn = 0; turn < CHANGES; turn += 1) {
    const host = `new-${turn}.example.org`
    dns.set(host, { A: [ADDRESS] })
    added_ms.push(
      ...(await timesOf(1, async () => {
        added.push(
          (await change('POST', '/api/domains', { app_id: app.id, hostname: host, ssl_mode: 'off' }, 201)).id,
        )
        await seen('/', ({ status }) => status === 200, host)
      })),
    )
    removed_ms.push(
      ...(await timesOf(1, async () => {
        await change('DELETE', `/api/domains/${added[turn]}`, undefined, 200)
        await seen('/', ({ status }) => status === 404, host)
      })),
    )
  }
  await besides()
  checkMiddle(report, `${name}: a domain added, looked up and served`, added_ms, limit_ms)
  checkMiddle(report, `${name}: a domain removed`, removed_ms, limit_ms)
}

/** Adds proven domains until there are `count`, and says which one the changes are about. */
function fill(
  data_directory: string,
  app_id: string,
  count: number,
): { domain_id: string; hostname: string; newest: string } {
  const db = new Database(join(data_directory, 'portreeve.db'))
  try {
    return db.transaction(() => {
      const at = new Date().toISOString()
      const project = db.prepare(
        'INSERT INTO projects (id, name, created_at, updated_at) VALUES (?, ?, ?, ?)',
      )
      const app = db.prepare(
        `INSERT INTO apps (id, name, project_id, status, source, git_url, created_at, updated_at) VALUES (?, ?, ?, 'stopped', 'git', 'https://git.example.com/a.git', ?, ?)`,
      )
      const domain = db.prepare(
        `INSERT INTO domains (id, app_id, project_id, hostname, kind, status, ssl_mode, token, verified_at, created_at, updated_at) VALUES (?, ?, ?, ?, 'custom', 'active', 'off', ?, ?, ?, ?)`,
      )
      const of = (column: string, id: string) =>
        db
          .prepare(`SELECT count(*) FROM domains WHERE ${column} = ? AND kind = 'custom'`)
          .pluck()
          .get(id) as number
      let owner = app_id
      let owned_by = db.prepare('SELECT project_id FROM apps WHERE id = ?').pluck().get(app_id) as string
      for (let n = db.prepare('SELECT count(*) FROM domains').pluck().get() as number; n < count; n += 1) {
        const is_full = of('project_id', owned_by) >= OF_PROJECT
        if (is_full) project.run((owned_by = newId('prj')), `project-${n}`, at, at)
        if (is_full || of('app_id', owner) >= OF_APP)
          app.run((owner = newId('app')), `app-${n}`, owned_by, at, at)
        domain.run(
          newId('dom'),
          owner,
          owned_by,
          `app-${n}.example.com`,
          randomBytes(20).toString('hex'),
          at,
          at,
          at,
        )
      }
      const newest = db
        .prepare('SELECT hostname FROM domains ORDER BY rowid DESC LIMIT 1')
        .pluck()
        .get() as string
      return {
        newest,
        ...(db
          .prepare(
            `SELECT id AS domain_id, hostname FROM domains WHERE app_id = ? AND kind = 'custom' ORDER BY rowid LIMIT 1`,
          )
          .get(app_id) as { domain_id: string; hostname: string }),
      }
    })()
  } finally {
    db.close()
  }
}

const visit = ({ edge_port }: Portreeve, host: string, path: string, agent: Agent | false = false) =>
  new Promise<Visit>((resolve, reject) => {
    const asked = get({ host: '127.0.0.1', port: edge_port, path, agent, headers: { host } }, (response) => {
      response
        .resume()
        .once('end', () =>
          resolve({
            status: response.statusCode!,
            headers: response.headers,
            is_kept: asked.reusedSocket,
          }),
        )
        .once('error', reject)
    }).once('error', reject)
  })

async function until(what: string, holds: () => Promise<boolean>, longest_ms = LONGEST_MS): Promise<void> {
  for (const started = performance.now(); !(await holds()); )
    if (performance.now() - started > longest_ms)
      throw new Error(`${what} does not answer by the new rule after ${longest_ms} ms.`)
}
