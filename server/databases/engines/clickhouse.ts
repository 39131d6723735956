import {
  type ContainerCommand,
  type Credentials,
  type DatabaseEngine,
  databaseUrl,
  readCounts,
} from '../engine.ts'
import { shellWord } from '#server/kernel/shell-word'
import { CLICKHOUSE } from './clients.ts'

const TLS = '/var/lib/clickhouse/portreeve-tls'
const login = (user: string, password: string) => ({ CLICKHOUSE_USER: user, CLICKHOUSE_PASSWORD: password })
const asAdmin = ({ admin_password }: Credentials) => login('portreeve', admin_password)
const asApp = ({ username, password }: Credentials) => login(username, password)
const CLIENT = ['clickhouse-client', '--host=127.0.0.1', '--multiquery'] as const
const script = (credentials: Credentials, lines: string[]): ContainerCommand => ({
  argv: CLIENT,
  env: asAdmin(credentials),
  stdin: lines.join('\n'),
})
/** The server writes and reads backups as files below its own folder, of which a pipe is made here. */
const FILE = '/var/lib/clickhouse/backups/portreeve.zip'

export const clickhouse = {
  name: 'clickhouse',
  label: 'ClickHouse',
  image: 'clickhouse/clickhouse-server',
  lines: ['25.8', '25.3'],
  port: 8123,
  volume_path: '/var/lib/clickhouse',
  least_memory_bytes: 1024 ** 3,
  environment: ({ admin_password }) => ({
    CLICKHOUSE_USER: 'portreeve',
    CLICKHOUSE_PASSWORD: admin_password,
    CLICKHOUSE_DEFAULT_ACCESS_MANAGEMENT: '1',
  }),
  username: (generation) => `app_${generation}`,
  probe: (credentials) => ({ argv: [...CLIENT, '--query=SELECT 1'], env: asAdmin(credentials) }),
  login: (credentials) => ({
    argv: [...CLIENT, `--database=${credentials.database}`, '--query=SELECT 1'],
    env: asApp(credentials),
  }),
  set_password: (credentials) =>
    script(credentials, [
      `CREATE DATABASE IF NOT EXISTS \`${credentials.database}\`;`,
      `CREATE USER IF NOT EXISTS ${credentials.username} IDENTIFIED BY '${credentials.password}';`,
      `ALTER USER ${credentials.username} IDENTIFIED BY '${credentials.password}' DEFAULT DATABASE \`${credentials.database}\`;`,
      `GRANT ALL ON \`${credentials.database}\`.* TO ${credentials.username};`,
    ]),
  revoke: (credentials, { username }) => script(credentials, [`DROP USER IF EXISTS ${username};`]),
  url: (credentials, address) => databaseUrl(address.tls ? 'https' : 'http', credentials, address),
  // What is reached from outside speaks HTTP, which needs no client of its own.
  client: ({ username, password, database }, { host, port, tls }) => {
    const address = `${tls ? 'https' : 'http'}://${host}:${port}/?database=${encodeURIComponent(database)}`
    const login = shellWord(`${username}:${password}`)
    return `curl ${tls ? '--insecure ' : ''}--user ${login} --data 'SHOW TABLES' ${shellWord(address)}`
  },
  snippets: CLICKHOUSE,
  tls: { port: 8443, files: { owner: 'clickhouse', directory: TLS } },
  command: (tls) => [
    '--',
    // By itself it keeps 20 GB of log files beside its data.
    '--logger.size=20M',
    '--logger.count=3',
    ...(tls
      ? [
          '--https_port=8443',
          `--openSSL.server.certificateFile=${TLS}/server.crt`,
          `--openSSL.server.privateKeyFile=${TLS}/server.key`,
        ]
      : []),
  ],
  dump: {
    extension: 'zip',
    uploads: { begins: Buffer.from('PK'), made_with: 'BACKUP DATABASE … TO File(….zip)' },
    command: (credentials) => ({
      argv: [
        'bash',
        '-c',
        `set -eu; rm -f ${FILE}; trap 'rm -f ${FILE}' EXIT; clickhouse-client --host=127.0.0.1 --query="BACKUP DATABASE \\\`$DB_NAME\\\` TO File('portreeve.zip')" >&2; cat ${FILE}`,
      ],
      env: { ...asAdmin(credentials), DB_NAME: credentials.database },
      is_quiet: true,
    }),
  },
  restore: {
    kind: 'stream',
    command: (credentials) => ({
      argv: [
        'bash',
        '-c',
        `set -eu; mkdir -p "$(dirname ${FILE})"; trap 'rm -f ${FILE}' EXIT; cat > ${FILE}; clickhouse-client --host=127.0.0.1 --query="RESTORE DATABASE \\\`$DB_NAME\\\` FROM File('portreeve.zip')" >&2`,
      ],
      env: { ...asApp(credentials), DB_NAME: credentials.database },
    }),
  },
  count: {
    read: readCounts,
    command: (credentials) => ({
      argv: [
        ...CLIENT,
        `--query=SELECT name, total_rows FROM system.tables WHERE database = '${credentials.database}' AND total_rows IS NOT NULL ORDER BY name`,
      ],
      env: asAdmin(credentials),
    }),
  },
} satisfies DatabaseEngine
