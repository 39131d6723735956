import { type DatabaseEngine, databaseUrl, readCounts } from '../engine.ts'
import { asApp, asRoot, countTables, DUMP_ENDS, dumpArguments, ownDatabase } from './mysql-family.ts'
import { MYSQL, mysqlClient } from './clients.ts'

/**
 * Who is in stays in, whatever becomes of the password: apps come back with theirs, others do not.
 * Sessions that ended by themselves in the meantime are passed over.
 */
const END_SESSIONS =
  'sessions=$(mysql --user=root --batch --skip-column-names) || exit; echo "$sessions" | mysql --user=root --force || true'

/** The login has one name for good, because routines and views name their definer; it may have two passwords. */
export const mysql = {
  name: 'mysql',
  label: 'MySQL',
  image: 'mysql',
  lines: ['8.4', '9', '8.0'],
  port: 3306,
  volume_path: '/var/lib/mysql',
  least_memory_bytes: 512 * 1024 ** 2,
  environment: ({ admin_password }) => ({
    MYSQL_ROOT_PASSWORD: admin_password,
    MYSQL_ROOT_HOST: '127.0.0.1',
  }),
  // Without replicas nobody reads the binary log; with it, only administrators may restore
  // triggers.
  command: () => ['mysqld', '--skip-log-bin', '--skip-name-resolve'],
  username: () => 'app',
  probe: () => ({ argv: ['mysqladmin', 'ping', '--host=127.0.0.1', '--protocol=tcp', '--silent'], env: {} }),
  login: (credentials) => asApp('mysql', credentials, '--execute=SELECT 1'),
  set_password: (credentials, previous) =>
    asRoot('mysql', credentials, [
      `CREATE USER IF NOT EXISTS '${credentials.username}'@'%' IDENTIFIED BY '${(previous ?? credentials).password}';`,
      ...(previous ? [] : ownDatabase(credentials)),
      previous
        ? `ALTER USER '${credentials.username}'@'%' IDENTIFIED BY '${credentials.password}' RETAIN CURRENT PASSWORD;`
        : `ALTER USER '${credentials.username}'@'%' IDENTIFIED BY '${credentials.password}';`,
    ]),
  revoke: (credentials) => ({
    ...asRoot('mysql', credentials, [
      `ALTER USER '${credentials.username}'@'%' DISCARD OLD PASSWORD;`,
      `SELECT CONCAT('KILL ', id, ';') FROM information_schema.processlist WHERE user = '${credentials.username}';`,
    ]),
    argv: ['sh', '-c', END_SESSIONS],
  }),
  url: (credentials, address) =>
    databaseUrl('mysql', credentials, address, address.tls ? { ssl: '{"rejectUnauthorized":false}' } : {}),
  client: mysqlClient('mysql', '--ssl-mode=REQUIRED'),
  snippets: MYSQL,
  // The server makes its own certificate beside its data.
  tls: { port: 3306 },
  dump: {
    extension: 'sql',
    uploads: { made_with: 'mysqldump', ends: DUMP_ENDS },
    command: (credentials) => ({
      argv: ['mysqldump', '--set-gtid-purged=OFF', ...dumpArguments(credentials)],
      env: { MYSQL_PWD: credentials.admin_password },
    }),
  },
  restore: { kind: 'stream', command: (credentials) => asApp('mysql', credentials) },
  count: { read: readCounts, command: (credentials) => countTables('mysql', credentials) },
} satisfies DatabaseEngine
