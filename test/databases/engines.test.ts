import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import {
  type ContainerCommand,
  type Credentials,
  type DatabaseEngine,
  readCounts,
} from '#server/databases/engine'
import { ENGINE_NAMES, ENGINES, engineOf } from '#server/databases/engines'
import { postgres } from '#server/databases/engines/postgres'
import { readSources } from '../meta/sources.ts'

const SECRETS = ['pAppPassword', 'pOldPassword', 'pAdminPassword']
const app: Credentials = {
  username: 'app_1',
  password: 'pAppPassword',
  database: 'shop',
  admin_password: 'pAdminPassword',
}
const old: Credentials = { ...app, password: 'pOldPassword' }

/** Every command that the descriptor knows. */
function commandsOf(engine: DatabaseEngine): ContainerCommand[] {
  const { restore } = engine
  return [
    engine.probe(app),
    engine.login(app),
    engine.set_password(app),
    engine.set_password(app, old),
    engine.revoke(app, old),
    engine.dump.command(app),
    engine.count.command(app),
    ...(restore.kind === 'stream'
      ? [restore.command(app)]
      : [restore.write(), restore.adopt(app), restore.adopted(app)]),
  ]
}
const arguments_of = (engine: DatabaseEngine) => [
  ...commandsOf(engine).map(({ argv }) => argv),
  engine.command?.(true) ?? [],
  engine.command?.(false) ?? [],
  engine.restore.load ?? [],
]

describe.each(ENGINES.map((engine) => [engine.name, engine as DatabaseEngine]))(
  'the descriptor of %s',
  (_, engine) => {
    it('keeps passwords out of every argument, where anybody in the container could read them', () => {
      for (const argv of arguments_of(engine))
        for (const secret of SECRETS) expect(argv.join('\n')).not.toContain(secret)
    })
    it('restores as the login of the app: what a dump asks for is done with its rights alone', () => {
      if (engine.restore.kind === 'file') return
      expect(Object.values(engine.restore.command(app).env)).not.toContain(app.admin_password)
    })
    it('encodes every part of its address, which other programs can read back', () => {
      const odd = { ...app, password: 'p@s/s:w?rd#', database: 'sh op' }
      const url = new URL(engine.url(odd, { host: 'shop.db.internal', port: 1234, tls: true }))
      expect([url.hostname, url.port, decodeURIComponent(url.password)]).toEqual([
        'shop.db.internal',
        '1234',
        odd.password,
      ])
    })
    it('has a line of shell for people, in which no value is more than one word', () => {
      const odd = { ...app, password: "p' ; touch /tmp/x #", database: 'sh op' }
      const at = { host: 'shop.db.internal', port: 1234, tls: true }
      const script = (line: string) => `set -f; set -- ${line}; printf '%s\\n' "$#"`
      const wordsOf = (credentials: Credentials) =>
        Number(execFileSync('sh', ['-c', script(engine.client(credentials, at))], { encoding: 'utf8' }))
      expect(wordsOf(odd)).toBe(wordsOf(app))
      expect(engine.client(app, at)).toContain('shop.db.internal')
    })
    it('shows how a program connects, in two languages, by the variable that a link gives', () => {
      expect(engine.snippets.map(({ language }) => language)).toEqual(['Node.js', 'Python'])
      for (const { code } of engine.snippets) expect(code).toContain('DATABASE_URL')
    })
    it('encrypts on the way from outside where the server speaks TLS', () => {
      const at = (tls: boolean) => engine.url(app, { host: 'h', port: 1, tls })
      expect(engine.tls === undefined || at(true) !== at(false)).toBe(true)
    })
    it('keeps key and data on the volume', () => {
      for (const path of [engine.tls?.files?.directory].filter((one) => one !== undefined))
        expect(path.startsWith(`${engine.volume_path}/`)).toBe(true)
    })
  },
)

describe('a new PostgreSQL', () => {
  it('brings its first files to the disk at once where its version knows how to', () => {
    const flags = (version: string) => postgres.first_environment(version).POSTGRES_INITDB_ARGS
    expect([flags('15'), flags('16.9')]).toEqual([
      expect.not.stringContaining('sync'),
      expect.not.stringContaining('sync'),
    ])
    for (const version of ['17', '17.5', '18']) expect(flags(version)).toMatch(/--sync-method=syncfs$/)
    // Whatever the version: never without, since an empty server must survive the loss of power as well.
    for (const line of postgres.lines) expect(flags(line)).not.toContain('--no-sync')
  })
})

it('PostgreSQL looks names of its superuser up nowhere but in its own schema, whatever an app has made', () => {
  const { look, cut, copy, recover } = postgres.point_in_time
  const commands = [
    ...commandsOf(postgres),
    ...[look(app), cut(app), copy(app), recover.recovered(), recover.adopt(app, 'before')],
  ]
  const of_superuser = commands.filter(({ env }) => env.PGUSER === 'postgres')
  expect(of_superuser.length).toBeGreaterThan(8)
  for (const { env, argv } of of_superuser)
    expect([argv[0], env.PGOPTIONS]).toEqual([argv[0], '-c search_path='])
})

describe('engines', () => {
  it('are found by their names', () => {
    expect(ENGINE_NAMES).toEqual(['postgres', 'mysql', 'mariadb', 'mongodb', 'redis', 'valkey', 'clickhouse'])
    for (const name of ENGINE_NAMES) expect(engineOf(name).name).toBe(name)
  })
  it('are told apart nowhere but in their descriptors', () => {
    const others = readSources(['server', 'routes']).filter(
      ({ path }) => path.startsWith('server/databases/') && !path.startsWith('server/databases/engines'),
    )
    const names = new RegExp(`['"](${ENGINE_NAMES.join('|')})['"]`)
    expect(
      others
        .filter(({ text }) => names.test(text.replace(/^\s*v\.examples.*$/gm, '')))
        .map(({ path }) => path),
    ).toEqual([])
  })
  it('are counted by lines of a name and a number', () => {
    expect(readCounts('a\t1\nb c\t20\n\nnoise\n')).toEqual({ a: 1, 'b c': 20 })
  })
})

it('ClickHouse keeps few log files beside its data, with encryption and without', () => {
  const { command } = ENGINES.find(({ name }) => name === 'clickhouse')!
  for (const tls of [true, false])
    expect(command!(tls)).toEqual(expect.arrayContaining(['--', '--logger.size=20M', '--logger.count=3']))
})
