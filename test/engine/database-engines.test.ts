import { randomBytes } from 'node:crypto'
import { afterAll, describe, expect, it } from 'vitest'
import type { Credentials, DatabaseEngine } from '#server/databases/engine'
import { mariadb } from '#server/databases/engines/mariadb'
import { postgres } from '#server/databases/engines/postgres'
import { redis } from '#server/databases/engines/redis'
import { valkey } from '#server/databases/engines/valkey'
import { type DatabaseContainer, startDatabaseContainer } from '#test/support/database-container'
import { testDocker } from '#test/support/engine-images'
import { poll } from '#test/support/poll'

const ROWS = 2000
/** Per engine that can be had here: a release line, what writes something into it and what reads it. */
const SAMPLES: {
  engine: DatabaseEngine
  line: string
  write: (as: (command: readonly string[], stdin: string) => Promise<string>) => Promise<string>
  counts: Record<string, number>
  /** A client that stays in with what it can lock, how those that are in are listed, and what is shown of it there. */
  session: { begin: readonly string[]; list: readonly string[]; shown: string }
}[] = [
  {
    engine: postgres,
    line: '17',
    write: (as) =>
      as(
        ['psql', '--quiet', '--set=ON_ERROR_STOP=1'],
        `CREATE SCHEMA odd; CREATE TABLE odd."a b" (id int); CREATE EXTENSION pgcrypto;
         CREATE TABLE notes AS SELECT n AS id, repeat('é', 40) AS body FROM generate_series(1, ${ROWS}) n;
         CREATE VIEW v AS SELECT * FROM notes;
         CREATE FUNCTION odd.trap() RETURNS text LANGUAGE plpgsql
           AS $$ BEGIN RAISE EXCEPTION 'what the app made ran as %', current_user; END $$;
         CREATE FUNCTION public.format(text, name, name) RETURNS text LANGUAGE sql AS 'SELECT odd.trap()';
         CREATE VIEW odd.pg_roles AS SELECT odd.trap() AS rolname;
         ALTER DATABASE shop SET search_path = odd, public, pg_catalog;`,
      ),
    counts: { 'odd."a b"': 0, 'public.notes': ROWS },
    session: {
      begin: ['psql', '--command=GRANT TEMP ON DATABASE shop TO PUBLIC; SELECT pg_sleep(3600)'],
      list: ['psql', '--command=SET ROLE NONE', '--command=SELECT query FROM pg_catalog.pg_stat_activity'],
      shown: 'pg_sleep(3600)',
    },
  },
  {
    engine: mariadb,
    line: '11.8',
    write: (as) =>
      as(
        ['mariadb', '--host=127.0.0.1', '--user=app', 'shop'],
        `CREATE TABLE \`a b\` (id int); CREATE TABLE notes (id int PRIMARY KEY, body varchar(80));
         INSERT INTO notes SELECT seq, repeat('é', 40) FROM seq_1_to_${ROWS};
         CREATE VIEW v AS SELECT * FROM notes; CREATE PROCEDURE p() SELECT 1;
         CREATE TRIGGER t BEFORE INSERT ON notes FOR EACH ROW SET NEW.body = NEW.body;`,
      ),
    counts: { 'a b': 0, notes: ROWS },
    session: {
      begin: [
        ...['mariadb', '--host=127.0.0.1', '--user=app', 'shop'],
        '--execute=LOCK TABLES notes WRITE; SELECT SLEEP(3600)',
      ],
      list: ['mariadb', '--host=127.0.0.1', '--user=app', '--execute=SHOW PROCESSLIST'],
      shown: 'SLEEP(3600)',
    },
  },
  ...[redis, valkey].map((engine) => ({
    engine: engine as DatabaseEngine,
    line: '8',
    write: (as: (command: readonly string[], stdin: string) => Promise<string>) =>
      as(
        [`${engine.name}-cli`, '-e', '--no-auth-warning'],
        `EVAL "for i=1,${ROWS} do redis.call('set','k'..i,i) end" 0\nSELECT 3\nSET one 1\n`,
      ),
    counts: { db0: ROWS, db3: 1 },
    session: {
      begin: [`${engine.name}-cli`, '-e', '--no-auth-warning', 'BLPOP', 'nothing', '0'],
      list: [`${engine.name}-cli`, '--no-auth-warning', 'CLIENT', 'LIST'],
      shown: 'cmd=blpop',
    },
  })),
]
const password = () => randomBytes(16).toString('hex')
const credentialsOf = (
  engine: DatabaseEngine,
  generation = 1,
  of: Partial<Credentials> = {},
): Credentials => ({
  database: 'shop',
  admin_password: password(),
  ...of,
  username: engine.username(generation),
  password: password(),
})
const client = ({ username, password, database }: Credentials) => ({
  PGHOST: '127.0.0.1',
  PGUSER: username,
  PGPASSWORD: password,
  PGDATABASE: database,
  MYSQL_PWD: password,
  REDISCLI_AUTH: password,
})

const made: { containers: DatabaseContainer[]; volumes: string[] } = { containers: [], volumes: [] }
const start = async (...[engine, credentials, options]: Parameters<typeof startDatabaseContainer>) => {
  if (!made.volumes.includes(options.volume)) made.volumes.push(options.volume)
  const server = await startDatabaseContainer(engine, credentials, options)
  made.containers.push(server)
  return server
}
afterAll(async () => {
  await Promise.all(made.containers.map((server) => server.dispose().catch(() => undefined)))
  await Promise.all(made.volumes.map((name) => testDocker().getVolume(name).remove({ force: true })))
})

/** Puts a dump into a server on a new volume, in the way that the engine's descriptor says. */
async function restored(
  engine: DatabaseEngine,
  line: string,
  dump: Buffer,
): Promise<[DatabaseContainer, Credentials]> {
  const credentials = credentialsOf(engine)
  const volume = `portreeve-test-${password()}`
  const { restore } = engine
  if (restore.kind === 'stream') {
    const server = await start(engine, credentials, { line, volume })
    await server.untilReady()
    await server.must(engine.set_password(credentials))
    await server.must(restore.command(credentials), dump)
    return [server, credentials]
  }
  const writer = await start(engine, credentials, { line, volume, command: ['sleep', '60'] })
  await writer.must(restore.write(), dump)
  await writer.dispose()
  const loader = await start(engine, credentials, { line, volume, command: restore.load })
  await loader.untilReady()
  await loader.must(engine.set_password(credentials))
  await loader.must(restore.adopt(credentials))
  await expect
    .poll(async () => (await loader.run(restore.adopted(credentials))).exit_code, { timeout: 10_000 })
    .toBe(0)
  await loader.container.stop({ t: 10 })
  const server = await start(engine, credentials, { line, volume })
  await server.untilReady()
  return [server, credentials]
}

describe.each(SAMPLES)('the descriptor of $engine.name', ({ engine, line, write, counts, session }) => {
  it('holds on a real server: login, count, dump, restore by the app login, rotation of who is in, too', async () => {
    const first = credentialsOf(engine)
    const server = await start(engine, first, { line, volume: `portreeve-test-${password()}` })
    await server.untilReady()
    await server.must(engine.set_password(first))
    await server.must(engine.set_password(first))
    await server.must(engine.login(first))
    expect((await server.run(engine.login({ ...first, password: 'wrong' }))).exit_code).not.toBe(0)

    await write((argv, stdin) => server.must({ argv, env: client(first), stdin }))
    expect(engine.count.read(await server.must(engine.count.command(first)))).toEqual(counts)

    const dump = await server.run(engine.dump.command(first))
    expect([dump.exit_code, dump.stdout.length > 1000]).toEqual([0, true])
    const [copy, own] = await restored(engine, line, dump.stdout)
    expect(engine.count.read(await copy.must(engine.count.command(own)))).toEqual(counts)
    await copy.must(engine.login(own))

    const next = credentialsOf(engine, 2, first)
    const intruder = server.run({ argv: session.begin, env: client(first) })
    await poll(async () =>
      (await server.must({ argv: session.list, env: client(first) })).includes(session.shown),
    )
    await server.must(engine.set_password(next, first))
    await server.must(engine.login(first))
    await server.must(engine.login(next))
    await server.must(engine.revoke(next, first))
    expect((await intruder).exit_code).not.toBe(0)
    await server.must(engine.revoke(next, first))
    expect((await server.run(engine.login(first))).exit_code).not.toBe(0)
    await server.must(engine.login(next))
    expect(engine.count.read(await server.must(engine.count.command(next)))).toEqual(counts)
  })
})

it('a dump for MariaDB that asks for files of the container gets none: its variables hold the password of root', async () => {
  const credentials = credentialsOf(mariadb)
  const server = await start(mariadb, credentials, { line: '11.8', volume: `portreeve-test-${password()}` })
  await server.untilReady()
  await server.must(mariadb.set_password(credentials, undefined))
  const hostile = `${mariadb.dump.uploads.guard}CREATE TABLE leak (line blob);
LOAD DATA LOCAL INFILE '/proc/self/environ' INTO TABLE leak;\n`
  const { exit_code } = await server.run(mariadb.restore.command(credentials), Buffer.from(hostile))
  expect(exit_code).not.toBe(0)
  expect(mariadb.count.read(await server.must(mariadb.count.command(credentials)))).toEqual({ leak: 0 })
})
