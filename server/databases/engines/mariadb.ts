import { type DatabaseEngine, databaseUrl, readCounts } from '../engine.ts'
import { asApp, asRoot, countTables, DUMP_ENDS, dumpArguments, ownDatabase } from './mysql-family.ts'
import { MYSQL, mysqlClient } from './clients.ts'

const TLS = '/var/lib/mysql/portreeve-tls'
const native = (password: string) => `mysql_native_password USING PASSWORD('${password}')`

/** The login has one name for good, because routines and views name their definer; it may have two passwords. */
export const mariadb = {
  name: 'mariadb',
  label: 'MariaDB',
  image: 'mariadb',
  lines: ['11.8', '11.4', '10.11', '10.6'],
  port: 3306,
  volume_path: '/var/lib/mysql',
  least_memory_bytes: 256 * 1024 ** 2,
  environment: ({ admin_password }) => ({
    MARIADB_ROOT_PASSWORD: admin_password,
    MARIADB_ROOT_HOST: '127.0.0.1',
  }),
  command: (tls) => [
    'mariadbd',
    '--skip-name-resolve',
    ...(tls ? [`--ssl-cert=${TLS}/server.crt`, `--ssl-key=${TLS}/server.key`] : []),
  ],
  username: () => 'app',
  probe: () => ({
    argv: ['mariadb-admin', 'ping', '--host=127.0.0.1', '--protocol=tcp', '--silent'],
    env: {},
  }),
  login: (credentials) => asApp('mariadb', credentials, '--execute=SELECT 1'),
  set_password: (credentials, previous) =>
    asRoot('mariadb', credentials, [
      `CREATE USER IF NOT EXISTS '${credentials.username}'@'%';`,
      ...(previous ? [] : ownDatabase(credentials)),
      `ALTER USER '${credentials.username}'@'%' IDENTIFIED VIA ${[credentials, ...(previous ? [previous] : [])].map(({ password }) => native(password)).join(' OR ')};`,
    ]),
  revoke: (credentials) =>
    asRoot('mariadb', credentials, [
      `ALTER USER '${credentials.username}'@'%' IDENTIFIED VIA ${native(credentials.password)};`,
      // Who is in stays in, whatever becomes of the password: apps come back with theirs, others do
      // not.
      `KILL USER ${credentials.username};`,
    ]),
  url: (credentials, address) =>
    databaseUrl('mysql', credentials, address, address.tls ? { ssl: '{"rejectUnauthorized":false}' } : {}),
  client: mysqlClient('mariadb', '--ssl --skip-ssl-verify-server-cert'),
  snippets: MYSQL,
  tls: { port: 3306, files: { owner: 'mysql', directory: TLS } },
  dump: {
    extension: 'sql',
    // Its client knows commands that run programs; in this mode it refuses them.
    uploads: {
      made_with: 'mariadb-dump',
      ends: DUMP_ENDS,
      guard: '/*!999999\\- enable the sandbox mode */\n',
    },
    command: (credentials) => ({
      argv: ['mariadb-dump', ...dumpArguments(credentials)],
      env: { MYSQL_PWD: credentials.admin_password },
    }),
  },
  restore: { kind: 'stream', command: (credentials) => asApp('mariadb', credentials) },
  count: { read: readCounts, command: (credentials) => countTables('mariadb', credentials) },
} satisfies DatabaseEngine
