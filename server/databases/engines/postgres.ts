import {
  type ContainerCommand,
  type Credentials,
  type DatabaseAddress,
  type DatabaseEngine,
  databaseUrl,
  readCounts,
} from '../engine.ts'
import { asAdmin, PSQL } from './postgres-admin.ts'
import { postgresLog } from './postgres-log.ts'
import { shellWord } from '#server/kernel/shell-word'
import { POSTGRES } from './clients.ts'

const asApp = ({ username, password, database }: Credentials) => ({
  PGHOST: '127.0.0.1',
  PGUSER: username,
  PGPASSWORD: password,
  PGDATABASE: database,
})
const INITDB = '--data-checksums --encoding=UTF8 --auth-host=scram-sha-256'
const script = (credentials: Credentials, lines: string[]): ContainerCommand => ({
  argv: PSQL,
  env: asAdmin(credentials),
  stdin: lines.join('\n'),
})
/** The database of the app. Its owner, in a transaction that goes on, keeps a change of the rights on it waiting. */
const ownDatabase = ({ database }: Credentials): string[] => [
  `SELECT 'CREATE DATABASE "${database}" OWNER app' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = '${database}') \\gexec`,
  `REVOKE ALL ON DATABASE "${database}" FROM PUBLIC;`,
]
const COUNT = `SELECT format('%I.%I', schemaname, tablename), (xpath('/row/c/text()', query_to_xml(
  format('SELECT count(*) AS c FROM %I.%I', schemaname, tablename), false, true, '')))[1]::text
  FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1`

const urlOf = (credentials: Credentials, address: DatabaseAddress): string =>
  databaseUrl('postgres', credentials, address, address.tls ? { sslmode: 'require' } : {})

/** Every login is a member of the role `app`, which owns all objects: a login that is rotated away owns nothing. */
export const postgres = {
  name: 'postgres',
  label: 'PostgreSQL',
  image: 'postgres',
  lines: ['17', '18', '16', '15', '14'],
  port: 5432,
  volume_path: '/var/lib/postgresql/data',
  least_memory_bytes: 128 * 1024 ** 2,
  environment: ({ admin_password }) => ({
    POSTGRES_PASSWORD: admin_password,
    // Passwords count inside the container too: it is from there that they are tried.
    POSTGRES_INITDB_ARGS: INITDB,
    PGDATA: '/var/lib/postgresql/data/pgdata',
  }),
  first_environment: (version) => ({
    // A thousand new files go to the disk at once; before 17 it only knows how to sync one after
    // another.
    POSTGRES_INITDB_ARGS: Number.parseInt(version, 10) < 17 ? INITDB : `${INITDB} --sync-method=syncfs`,
  }),
  username: (generation) => `app_${generation}`,
  probe: (credentials) => ({ argv: ['pg_isready', '--quiet'], env: asAdmin(credentials) }),
  login: (credentials) => ({ argv: [...PSQL, '--command=SELECT 1'], env: asApp(credentials) }),
  set_password: (credentials, previous) =>
    script(credentials, [
      // Each commit would wait for the disk; the last one waits for all of them.
      'SET synchronous_commit = off;',
      `SELECT 'CREATE ROLE app' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'app') \\gexec`,
      `SELECT 'CREATE ROLE ${credentials.username}' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '${credentials.username}') \\gexec`,
      `GRANT app TO ${credentials.username};`,
      `ALTER ROLE ${credentials.username} SET role = 'app';`,
      ...(previous ? [] : ownDatabase(credentials)),
      'SET synchronous_commit = on;',
      `ALTER ROLE ${credentials.username} LOGIN PASSWORD '${credentials.password}';`,
    ]),
  revoke: (credentials, { username, database }) =>
    script(credentials, [
      `SELECT 'ALTER ROLE ${username} NOLOGIN PASSWORD NULL' FROM pg_roles WHERE rolname = '${username}' \\gexec`,
      `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = '${username}' \\g /dev/null`,
      `\\connect "${database}"`,
      `SELECT 'REASSIGN OWNED BY ${username} TO app; DROP OWNED BY ${username}; DROP ROLE ${username}' FROM pg_roles WHERE rolname = '${username}' \\gexec`,
    ]),
  url: urlOf,
  client: (credentials, address) => `psql ${shellWord(urlOf(credentials, address))}`,
  snippets: POSTGRES,
  tls: { port: 5432, files: { owner: 'postgres', directory: '/var/lib/postgresql/data/tls' } },
  point_in_time: postgresLog,
  command: (tls) => [
    'postgres',
    ...(tls
      ? [
          'ssl=on',
          'ssl_cert_file=/var/lib/postgresql/data/tls/server.crt',
          'ssl_key_file=/var/lib/postgresql/data/tls/server.key',
        ].flatMap((setting) => ['-c', setting])
      : []),
  ],
  dump: {
    extension: 'dump',
    uploads: { begins: Buffer.from('PGDMP'), made_with: 'pg_dump --format=custom' },
    command: (credentials) => ({
      // Compressed once, behind it: its own compression would cost the server's CPU and gain
      // nothing. It reads nothing of a table that a transaction has locked, and would wait for as
      // long as that is open.
      argv: ['pg_dump', '--format=custom', '--compress=0', '--lock-wait-timeout=60s'],
      env: asAdmin(credentials, credentials.database),
      locked:
        /canceling statement due to (?:statement|lock) timeout[\s\S]*?LOCK TABLE (.*) IN ACCESS SHARE MODE/,
    }),
  },
  restore: {
    kind: 'stream',
    // What is copied into a table of the same transaction goes into its file alone, which is synced
    // at the end of it, and not into the log as well: half of what would be written.
    load: ['postgres', '-c', 'wal_level=minimal', '-c', 'max_wal_senders=0', '-c', 'autovacuum=off'],
    command: (credentials) => ({
      argv: [
        'pg_restore',
        '--no-owner',
        '--no-privileges',
        '--exit-on-error',
        '--single-transaction',
        `--dbname=${credentials.database}`,
      ],
      env: asApp(credentials),
    }),
  },
  count: {
    read: readCounts,
    command: (credentials) => ({
      argv: [...PSQL, '--tuples-only', '--no-align', '--field-separator=\t', `--command=${COUNT}`],
      env: asAdmin(credentials, credentials.database),
    }),
  },
} satisfies DatabaseEngine
