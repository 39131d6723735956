import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { changesOf } from '#server/project-file/diff'
import { itemsOf } from '#server/project-file/items'
import { readProjectFile } from '#server/project-file/read'
import { seemsSecret } from '#server/kernel/secret-names'
import { createTestApi, type TestApi } from '#test/support/api'
import { type Session, sessionOf } from '../../cli/client/session.ts'
import { type ApplyOptions, applyChanges } from '../../cli/project/apply.ts'
import { refusalsOf, requireNoRefusals } from '../../cli/project/checks.ts'
import { exportText } from '../../cli/project/export.ts'
import { withFiles } from '../../cli/project/files.ts'
import { readLive } from '../../cli/project/live.ts'
import { planJson, planText } from '../../cli/project/plan-text.ts'
import { readSecrets, requireSecrets } from '../../cli/project/secrets.ts'

const FILE = `
project: shop
variables:
  REGION: eu
  SHARED_TOKEN: { secret: true }
databases:
  shop-db: { engine: postgres, version: 17 }
volumes:
  uploads: { size_bytes: 1073741824 }
  cache: { access: shared }
apps:
  web:
    image: nginx:1.29
    port: 8080
    replicas: 2
    health_check: { type: http, path: /health }
    limits: { memory_bytes: 268435456 }
    processes:
      worker: { command: node worker.js }
    variables:
      LOG_LEVEL: info
      WORKERS: 4
      EMPTY: ''
      STRIPE_KEY: { secret: true, comment: for payments }
      PAYMENT_TOKEN: { value: none, secret: false }
      AT_BUILD: { value: x, scopes: [build] }
    domains:
      - shop.example.com
      - { hostname: api.example.com, path: /v1, strip_path: true, ssl_mode: 'off', headers: { X-Team: shop } }
    databases: { shop-db: DATABASE_URL }
    mounts:
      /data/cache: cache
      /etc/web.conf: { content: "debug = false\\n", mode: '0640' }
    cron:
      nightly: { expression: '30 3 * * *', command: npm run clean, retries: 2 }
  tools:
    source: upload
    mounts:
      /data/uploads: uploads
      /data/all: { volume: cache, read_only: true }
backups:
  db every night: { target: database, of: shop-db, cron: '0 2 * * *', retention: { count: 3 }, destination: This server }
`
const SECRETS = 'SHARED_TOKEN=alpha-canary\n[web]\nSTRIPE_KEY="beta-canary"\n'

let api: TestApi
let session: Session
beforeEach(async () => {
  api = await createTestApi({ jobs: false })
  session = sessionOf('test', { url: api.url, token: 'test-admin' })
  folder = mkdtempSync(join(tmpdir(), 'ptr-project-'))
})
afterEach(async () => {
  rmSync(folder, { recursive: true })
  await api.close()
})

const said: string[] = []
const options: ApplyOptions = {
  prune: false,
  deploy: false,
  wait: false,
  is_quiet: true,
  secrets: readSecrets(SECRETS),
  tell: (line) => void said.push(line),
}
/** Files of mounts lie here. */
let folder: string
async function plan(text: string, at = session, prune = false) {
  const file = readProjectFile(text)
  const live = await readLive(at, file.project)
  const changes = changesOf(withFiles(file, live.items, folder), live.items)
  return { live, changes, refusals: await refusalsOf(at, live, changes, prune) }
}
async function apply(text: string, given: Partial<ApplyOptions> = {}, at = session) {
  const { live, changes } = await plan(text, at)
  await applyChanges(at, live, changes, { ...options, ...given })
}
const exported = async (at = session) => exportText(await readLive(at, 'shop'), seemsSecret)

describe('portreeve.yaml', () => {
  it('makes a project as it says; again, there is nothing to do', async () => {
    const before = await plan(FILE)
    expect(before.live.id).toBeUndefined()
    expect(before.changes.map(({ action }) => action)).toEqual(before.changes.map(() => 'create'))
    await apply(FILE)
    const after = await plan(FILE)
    expect(after.changes).toEqual([])
    expect(planText(after.changes, { prune: true })).toBe('Nothing to do: all is as the file says.')
    const events = api.events().length
    await apply(FILE)
    expect(api.events()).toHaveLength(events)
  })
  it('ends with the reason when a database of it could not be made', async () => {
    api.kernel.db.raw.exec(`CREATE TRIGGER broken AFTER INSERT ON databases BEGIN
      UPDATE databases SET status = 'failed', last_error = 'Its image is gone.' WHERE id = NEW.id; END`)
    const text = 'project: shop\ndatabases:\n  shop-db: { engine: postgres, version: 17 }\n'
    await expect(apply(text, { deploy: true })).rejects.toThrow(
      'The database shop-db could not be made: Its image is gone.',
    )
  })
  it('takes the text of a mounted file from beside it alone: no folder, nothing further up, no link out', async () => {
    const outside = mkdtempSync(join(tmpdir(), 'ptr-outside-'))
    writeFileSync(join(outside, 'id_rsa'), 'canary')
    symlinkSync(join(outside, 'id_rsa'), join(folder, 'link'))
    symlinkSync(outside, join(folder, 'away'))
    mkdirSync(join(folder, 'etc'))
    const mounted = (source: string) =>
      `project: shop\napps:\n  web:\n    image: nginx:1.29\n    mounts:\n      /etc/web.conf: { file: ${source} }\n`
    const above = `../${basename(outside)}/id_rsa`
    for (const source of [above, 'link', 'away/id_rsa', 'etc'])
      await expect(plan(mounted(source)), source).rejects.toThrow(`${source} is no file in ${folder}`)
    rmSync(outside, { recursive: true })
  })
  it('is written from what runs, and makes the same on an empty installation', async () => {
    await apply(FILE)
    const text = await exported()
    expect(text).not.toMatch(/canary/)
    expect((await plan(text)).changes).toEqual([])
    const other = await createTestApi({ jobs: false })
    try {
      const there = sessionOf('there', { url: other.url, token: 'test-admin' })
      // The text of a mounted file is told to nobody.
      await expect(plan(text, there)).rejects.toThrow('These files are missing')
      mkdirSync(join(folder, 'web/etc'), { recursive: true })
      writeFileSync(join(folder, 'web/etc/web.conf'), 'debug = false\n')
      await apply(text, {}, there)
      expect(await exported(there)).toBe(text)
      expect((await plan(FILE, there)).changes).toEqual([])
    } finally {
      await other.close()
    }
  })
  it('reads going back to any second, changes single fields of it, exports it, and turns it off', async () => {
    const settled = async (point_in_time: string) => {
      const text = FILE.replace('version: 17 }', `version: 17, point_in_time: ${point_in_time} }`)
      const { changes } = await plan(text)
      // No jobs run here that would make the database.
      api.kernel.db.sql(`UPDATE databases SET status = 'running'`).run()
      await apply(text)
      expect((await plan(text)).changes).toEqual([])
      return changes.flatMap(({ fields }) => fields).filter(({ field }) => field === 'point_in_time')
    }
    expect(await settled('{ days: 3 }')).toHaveLength(1)
    expect(await settled('{ enabled: true }')).toEqual([])
    expect(await settled('{ destination: null, encrypted: false }')).toHaveLength(1)
    expect(await exported()).toMatch(/point_in_time:\n +enabled: true\n +days: 3\n +encrypted: false\n/)
    expect(await settled('{ enabled: false, days: 30 }')).toHaveLength(1)
    expect(await exported()).not.toContain('point_in_time')
  })
  it('changes what differs and nothing else, and shows no value of a secret in the plan', async () => {
    await apply(FILE)
    const changed = FILE.replace('replicas: 2', 'replicas: 3')
      .replace('LOG_LEVEL: info', 'LOG_LEVEL: debug')
      .replace("ssl_mode: 'off'", 'ssl_mode: self_signed')
      .replace('npm run clean', 'npm run tidy')
      .replace('count: 3', 'count: 5')
      .replace('DATABASE_URL }', 'PG_URL }')
      .replace('REGION: eu', 'REGION: us')
      .replace('      WORKERS: 4\n', '      WORKERS: { secret: true }\n      NEW_KEY: { secret: true }\n')
    const { changes } = await plan(changed)
    const text = planText(changes, { prune: false })
    expect(text).toContain('replicas: 2 → 3')
    expect(text).toContain('LOG_LEVEL of web\n    value: "info" → "debug"')
    expect(changes.map(({ action, item }) => `${action} ${item.kind} ${item.name}`)).toEqual([
      'update shared variable REGION',
      'update app web',
      'update variable LOG_LEVEL',
      'update variable WORKERS',
      'create variable NEW_KEY',
      'update database link shop-db',
      'update domain api.example.com/v1',
      'update cron job nightly',
      'update backup db every night',
    ])
    expect(() => requireSecrets(changes, options.secrets)).toThrow('No value is known for NEW_KEY of web.')
    await apply(changed, { secrets: readSecrets('NEW_KEY=gamma-canary') })
    expect((await plan(changed)).changes).toEqual([])
    expect(JSON.stringify(planJson(changes)) + text + said.join()).not.toMatch(/canary/)
  })
  it('lets what it does not name stay, and removes it when it is asked to, but only of lists that it has', async () => {
    await apply(FILE)
    const less = FILE.replace(/ {2}tools:\n( {4}.*\n)+/, '')
      .replace('      AT_BUILD: { value: x, scopes: [build] }\n', '')
      .replace('      - shop.example.com\n', '')
      .replace(/ {4}cron:\n.*\n/, '')
      .replace('  REGION: eu\n', '')
    const { changes } = await plan(less)
    expect(changes.map(({ action, item }) => `${action} ${item.kind} ${item.name}`)).toEqual([
      'extra domain shop.example.com',
      'extra variable AT_BUILD',
      'extra app tools',
      'extra shared variable REGION',
    ])
    expect(planText(changes, { prune: false })).toContain('AT_BUILD of web is not in the file; it stays')
    // What moves in has no --prune, and says nothing of what is there already.
    expect(planText(changes, { prune: 'never' })).toBe('Nothing to do: all is as the file says.')
    await apply(less)
    expect((await plan(less)).changes).toHaveLength(4)
    await apply(less, { prune: true })
    const left = await readLive(session, 'shop')
    expect(left.items.some(({ kind }) => kind === 'cron job')).toBe(true)
    expect(left.items.some(({ name }) => name === 'AT_BUILD' || name === 'REGION')).toBe(false)
  })
  it('knows a mounted file by its digest: another text of the same length takes its place, unseen in the plan', async () => {
    await apply(FILE)
    const other = FILE.replace('debug = false', 'debug = trUE!')
    const { changes } = await plan(other)
    expect(changes.map(({ action, item }) => `${action} ${item.kind} ${item.name}`)).toEqual([
      'update mount /etc/web.conf',
    ])
    expect(planText(changes, { prune: false }) + JSON.stringify(planJson(changes))).not.toContain('debug')
    await apply(other)
    expect((await plan(other)).changes).toEqual([])
    const { items } = await readLive(session, 'shop')
    expect(items.find(({ name }) => name === '/etc/web.conf')?.fields.mode).toBe('0640')
  })
  it('puts another mount or link in the place of one in one call: nothing that is lost between costs the old one', async () => {
    await apply(FILE)
    // The connection breaks after the first call that changes anything.
    let calls = 0
    const broken: Session = {
      ...session,
      send: (path, init) =>
        calls++ === 0 ? session.send(path, init) : Promise.reject(new TypeError('The network is gone.')),
    }
    const named = async (name: string) =>
      (await readLive(session, 'shop')).items.find((item) => item.name === name && item.of === 'web')?.fields
    const sent = async (text: string) => {
      calls = 0
      const { live, changes } = await plan(text)
      await applyChanges(broken, live, changes, options)
      expect(calls).toBe(1)
    }
    await sent(FILE.replace('debug = false', 'debug = truth'))
    await sent(
      FILE.replace('debug = false', 'debug = truth').replace(
        '/data/cache: cache',
        '/data/cache: { volume: cache, read_only: true }',
      ),
    )
    await sent(
      FILE.replace('debug = false', 'debug = truth')
        .replace('shop-db: DATABASE_URL', 'shop-db: SHOP_URL')
        .replace('/data/cache: cache', '/data/cache: { volume: cache }'),
    )
    expect(await named('/etc/web.conf')).toMatchObject({ mode: '0640' })
    // The file says nothing more about it, so it stays as it is.
    expect(await named('/data/cache')).toEqual({ volume: 'cache', read_only: true })
    expect(await named('shop-db')).toEqual({ key: 'SHOP_URL' })
  })
  it('moves a mount to another volume, and takes mounts away before their volumes', async () => {
    await apply(FILE)
    const moved = FILE.replace('      /data/all: { volume: cache, read_only: true }\n', '')
      .replace('/data/cache: cache', '/data/cache: { volume: other }')
      .replace('  cache: { access: shared }', '  other: {}')
      .replace('replicas: 2', 'replicas: 1')
      .replace('    processes:\n      worker: { command: node worker.js }\n', '    processes: {}\n')
    const { changes, refusals } = await plan(moved, session, true)
    expect([...refusals.values()]).toEqual([])
    expect(changes.map(({ action, item }) => `${action} ${item.kind} ${item.name}`)).toEqual([
      'create volume other',
      'update app web',
      'update mount /data/cache',
      'extra mount /data/all',
      'extra volume cache',
    ])
    await apply(moved, { prune: true })
    expect((await plan(moved)).changes.filter(({ item }) => item.kind !== 'volume')).toEqual([])
  })
  it('is told what the server would refuse before anything is done', async () => {
    await apply(FILE)
    await api.as('admin').post('/api/apps', { name: 'elsewhere', image: 'nginx:1.29' })
    const wrong = FILE.replace('engine: postgres, version: 17', 'engine: postgres, version: 16')
      .replace('{ size_bytes: 1073741824 }', '{ size_bytes: 2147483648 }')
      .replace('image: nginx:1.29', 'git_url: https://git.example.com/x.git')
      .replace("expression: '30 3 * * *'", "expression: '90 3 * * *'")
      .replace('of: shop-db', 'of: gone')
      .replace('destination: This server', 'destination: Nowhere')
      .replace('      - shop.example.com\n', '')
      .replace(
        '  tools:\n    source: upload\n',
        `  elsewhere: { image: 'nginx:1' }
  tools:
    domains: [shop.example.com]
`,
      )
      .replace('DATABASE_URL }', 'LOG_LEVEL }')
      .replace('/data/cache: cache', '/data/cache: uploads')
      .replace('/data/uploads: uploads', '/data/uploads: uploads\n      /data/uploads/inner: cache')
    const before = api.events().length
    const { changes, refusals } = await plan(wrong)
    const told = planText(changes, { prune: false, refusals })
    expect([...refusals].map(([{ item }, text]) => `${item.kind} ${item.name}: ${text}`)).toEqual([
      expect.stringMatching(/^database shop-db: version: is older than 17/),
      'volume uploads: size_bytes: cannot be changed. Make another volume, and copy the data over.',
      'app web: git_url: cannot be set: the source of this app is image.',
      'app elsewhere: the name is taken by an app of another project; names of apps are unique on a server.',
      'database link shop-db: web has a variable LOG_LEVEL of its own, which would count instead of the link.',
      'mount /data/cache: the volume uploads is written by tools, and only one may. Mount it read_only, or use access shared.',
      'mount /data/uploads/inner: overlaps with the mount at /data/uploads; mounts lie side by side.',
      'domain shop.example.com: is a domain of the app web already. Remove it there first.',
      expect.stringMatching(/^cron job nightly: expression: is no schedule/),
      'backup db every night: of: there is no database gone in this project.',
    ])
    expect(told).toContain('10 would be refused')
    expect(() => requireNoRefusals(refusals)).toThrow('Nothing was changed.')
    expect(planJson(changes, refusals).filter(({ refused }) => refused !== null)).toHaveLength(10)
    expect(api.events()).toHaveLength(before)
    const engine = FILE.replace('engine: postgres, version: 17', 'engine: mysql, version: 8')
    expect([...(await plan(engine)).refusals.values()]).toEqual([
      'engine: stays postgres. Make another database, and move the data with a dump.',
    ])
    const provider = FILE.replace('destination: This server', 'destination: Nowhere')
    expect([...(await plan(provider)).refusals.values()]).toEqual([
      'destination: there is no storage provider Nowhere.',
    ])
  })
  it('backs up a volume that a compose file makes, which is itself no part of it', async () => {
    await apply(FILE)
    const { id: project_id } = (await plan(FILE)).live
    const compose = 'services: { db: { image: "postgres:17", volumes: ["data:/d"] } }\nvolumes: { data: }'
    const { id } = (await api.as('admin').post('/api/apps', { name: 'wiki', compose, project_id })).body.data
    await api.services.volumes.ensureStack({ id, name: 'wiki', project_id: project_id! }, [
      { volume: 'data', service: 'db', path: '/d', read_only: false },
    ])
    const more = `${FILE}  wiki: { target: volume, of: wiki-data, cron: '0 4 * * *' }\n`
    const { changes, refusals } = await plan(more)
    expect([refusals.size, changes.filter(({ action }) => action !== 'extra')]).toMatchObject([
      0,
      [{ action: 'create', item: { kind: 'backup', name: 'wiki' } }],
    ])
    await apply(more)
    expect((await plan(more)).changes.filter(({ action }) => action !== 'extra')).toEqual([])
  })
  it('says what the server refused, of what; what was done stays, and the next call goes on', async () => {
    await apply(FILE)
    const wrong = FILE.replace('image: nginx:1.29', 'git_url: https://git.example.com/x.git')
    await expect(apply(wrong)).rejects.toThrow(
      /^app web: git_url: cannot be set: the source of this app is image/,
    )
    expect((await plan(FILE)).changes).toEqual([])
  })
})

describe('what is wrong with a file', () => {
  it.each([
    ['apps: { web: { imagee: x } }', 'apps.web.imagee: is not known. Did you mean image?'],
    ['apps: { constructor: { image: x } }', 'apps.constructor: cannot be used as a name here.'],
    ['variables: { constructor: x }', 'variables.constructor: cannot be used as a name here.'],
    [String.raw`apps: { web: { variables: { A: "\ud800" } } }`, 'apps.web.variables.A: holds half of a'],
    ['appps: {}', 'appps: is not known. Did you mean apps?'],
    ['apps: { web: { zzzzzzzzz: 1 } }', 'apps.web.zzzzzzzzz: is not known. Known: '],
    [
      'apps: { web: { health_check: { pathh: /x } } }',
      'apps.web.health_check.pathh: is not known. Did you mean path?',
    ],
    ['apps: { web: { port: high } }', 'apps.web.port: must be a number.'],
    ['apps: { web: { domains: [{ path: /x }] } }', 'apps.web.domains.0.hostname: is required.'],
    ['apps: { web: { variables: { API_KEY: abc } } }', 'apps.web.variables.API_KEY: looks like a secret.'],
    ['apps: { web: { variables: { A: { secret: true, value: x } } } }', 'apps.web.variables.A: is a secret'],
    ['apps: { web: { variables: { A: { comment: x } } } }', 'apps.web.variables.A: has no value.'],
    [
      'databases: {}\napps: { web: { databases: { db: URL } } }',
      'apps.web.databases.db: is no database of this file.',
    ],
    ['databases: { db: { engine: oracle } }', 'databases.db.engine: must be one of'],
    ['apps: { web: { image: [canary] } }', 'apps.web.image: must be a text.'],
    ['apps: { web: { mounts: { data: v } } }', 'apps.web.mounts.data: must be absolute, such as /data.'],
    [
      'apps: { web: { mounts: { /d: { read_only: true } } } }',
      'apps.web.mounts./d: needs one of volume, content and file.',
    ],
    [
      'apps: { web: { mounts: { /d: { volume: a, mode: "0600" } } } }',
      'apps.web.mounts./d: has a mode, which is for files',
    ],
    [
      'volumes: {}\napps: { web: { mounts: { /d: v } } }',
      'apps.web.mounts./d: names v, which is no volume of this file.',
    ],
    ['- a', 'The file must be a mapping'],
    ['a: [', 'The file is not valid YAML (line 1)'],
    ['a: &x [*x]', 'a: is not known'],
    ['[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[', 'The file has too many lines'],
  ])('%s: %s', (text, sentence) => {
    expect(() => readProjectFile(text)).toThrow(sentence)
  })
  it('is told all at once', () => {
    expect(() => readProjectFile('apps: { web: { port: high, replicas: many } }')).toThrow(
      'apps.web.port: must be a number.\napps.web.replicas: must be a number.',
    )
  })
  it('and an empty one says nothing', () => {
    expect(itemsOf(readProjectFile('')).items).toEqual([])
  })
})
