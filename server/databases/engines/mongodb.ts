import {
  type ContainerCommand,
  type Credentials,
  type DatabaseAddress,
  type DatabaseEngine,
  databaseUrl,
  readCounts,
} from '../engine.ts'
import { shellWord } from '#server/kernel/shell-word'
import { MONGODB } from './clients.ts'

const TLS = '/data/db/portreeve-tls'
const asApp = (credentials: Credentials) => ({
  DB_NAME: credentials.database,
  DB_USER: credentials.username,
  DB_PASSWORD: credentials.password,
})
const asAdmin = (credentials: Credentials) => ({
  ...asApp(credentials),
  ADMIN_PASSWORD: credentials.admin_password,
})
/** A script for the shell of the engine, which finds names and passwords among its variables. */
const shell = (env: Record<string, string>, lines: string[]): ContainerCommand => ({
  argv: ['mongosh', '--quiet', '--norc', '--nodb', '--eval', lines.join('\n')],
  env,
})
const ADMIN = `const { env } = process, client = new Mongo('mongodb://root:' + env.ADMIN_PASSWORD + '@127.0.0.1/admin'), own = client.getDB(env.DB_NAME)`
/** The tools read passwords from a file or from their arguments; the file is a pipe that nobody else sees. */
const tool = (program: string, login: string, env: Record<string, string>): ContainerCommand => ({
  argv: [
    'bash',
    '-c',
    `exec ${program} --config=<(printf 'uri: mongodb://%s:%s@127.0.0.1/%s?authSource=%s\\n' ${login})`,
  ],
  env,
})

const urlOf = (credentials: Credentials, address: DatabaseAddress): string => {
  const parameters = address.tls ? { tls: 'true', tlsAllowInvalidCertificates: 'true' } : undefined
  return databaseUrl('mongodb', credentials, address, parameters)
}

export const mongodb = {
  name: 'mongodb',
  label: 'MongoDB',
  image: 'mongo',
  lines: ['8.0', '7.0'],
  port: 27017,
  volume_path: '/data/db',
  least_memory_bytes: 512 * 1024 ** 2,
  environment: ({ admin_password }) => ({
    MONGO_INITDB_ROOT_USERNAME: 'root',
    MONGO_INITDB_ROOT_PASSWORD: admin_password,
  }),
  command: (tls) => [
    'mongod',
    '--bind_ip_all',
    ...(tls ? ['--tlsMode', 'preferTLS', '--tlsCertificateKeyFile', `${TLS}/server.pem`] : []),
  ],
  username: (generation) => `app_${generation}`,
  probe: (credentials) => shell(asAdmin(credentials), [ADMIN, `own.adminCommand({ ping: 1 })`]),
  login: (credentials) =>
    shell(asApp(credentials), [
      `const { env } = process`,
      `new Mongo('mongodb://' + env.DB_USER + ':' + env.DB_PASSWORD + '@127.0.0.1/' + env.DB_NAME).getDB(env.DB_NAME).runCommand({ ping: 1 })`,
    ]),
  set_password: (credentials) =>
    shell(asAdmin(credentials), [
      ADMIN,
      `const user = { pwd: env.DB_PASSWORD, roles: [{ role: 'dbOwner', db: env.DB_NAME }] }`,
      `if (own.getUser(env.DB_USER)) own.updateUser(env.DB_USER, user); else own.createUser({ user: env.DB_USER, ...user })`,
    ]),
  revoke: (credentials, previous) =>
    shell(asAdmin({ ...credentials, username: previous.username }), [
      ADMIN,
      `if (own.getUser(env.DB_USER)) own.dropUser(env.DB_USER)`,
    ]),
  url: urlOf,
  client: (credentials, address) => `mongosh ${shellWord(urlOf(credentials, address))}`,
  snippets: MONGODB,
  tls: { port: 27017, files: { owner: 'mongodb', directory: TLS } },
  dump: {
    extension: 'archive',
    uploads: { begins: Buffer.from([0x6d, 0xe2, 0x99, 0x81]), made_with: 'mongodump --archive' },
    command: (credentials) =>
      tool(
        'mongodump --quiet --archive --db="$DB_NAME"',
        'root "$ADMIN_PASSWORD" "$DB_NAME" admin',
        asAdmin(credentials),
      ),
  },
  restore: {
    kind: 'stream',
    command: (credentials) =>
      tool(
        `mongorestore --quiet --archive --drop --stopOnError --nsInclude='*' --nsFrom='$db$.$c$' --nsTo="$DB_NAME.\\$c\\$"`,
        '"$DB_USER" "$DB_PASSWORD" "$DB_NAME" "$DB_NAME"',
        asApp(credentials),
      ),
  },
  count: {
    read: readCounts,
    command: (credentials) =>
      shell(asAdmin(credentials), [
        ADMIN,
        `for (const name of own.getCollectionNames().sort()) print(name + '\\t' + own.getCollection(name).countDocuments({}))`,
      ]),
  },
} satisfies DatabaseEngine
