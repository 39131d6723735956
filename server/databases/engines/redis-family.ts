import {
  type ContainerCommand,
  type Credentials,
  type DatabaseAddress,
  type DatabaseEngine,
  databaseUrl,
  type FileRestore,
} from '../engine.ts'
import { shellWord } from '#server/kernel/shell-word'
import { REDIS } from './clients.ts'

/** Passwords live in an access list on the volume: as an argument of the server everybody would see them. */
const ACCESS_LIST = '/data/users.acl'
const TLS = '/data/tls'
const TLS_PORT = 6380

/** `db0:keys=5,expires=0,…` for each keyspace that has keys. */
const readKeyspaces = (output: string): Record<string, number> =>
  Object.fromEntries(
    [...output.matchAll(/^(db\d+):keys=(\d+)/gm)].map(([, name, keys]) => [name!, Number(keys)]),
  )

const urlOf = (credentials: Credentials, address: DatabaseAddress): string =>
  databaseUrl(address.tls ? 'rediss' : 'redis', { ...credentials, database: '0' }, address)

/** Redis and Valkey are one program under two names; this is what does not depend on the name. */
export function redisFamily(server: 'redis' | 'valkey') {
  const client = (credentials: Credentials, ...argv: string[]): ContainerCommand => ({
    argv: [`${server}-cli`, '-e', '--no-auth-warning', ...argv],
    env: { REDISCLI_AUTH: credentials.password },
  })
  const lines = (credentials: Credentials, commands: string[]): ContainerCommand => ({
    ...client(credentials),
    stdin: `${commands.join('\n')}\n`,
  })
  // The access list must exist before the server starts; until it has a password, only the
  // container itself is let in.
  const start = (...more: string[]): string[] => [
    'sh',
    '-c',
    `touch ${ACCESS_LIST}; exec docker-entrypoint.sh ${server}-server "$@"`,
    server,
    ...['--dir', '/data', '--bind', '*', '-::*', '--protected-mode', 'yes', '--aclfile', ACCESS_LIST],
    ...more,
  ]
  const restore: FileRestore = {
    kind: 'file',
    write: () => ({ argv: ['dd', 'of=/data/dump.rdb', 'bs=1M', 'status=none', 'conv=fsync'], env: {} }),
    // A server with an append-only file reads that alone and would start empty beside a snapshot.
    load: start('--appendonly', 'no'),
    adopt: (credentials) => lines(credentials, ['CONFIG SET appendonly yes']),
    adopted: (credentials) => ({
      argv: [
        'sh',
        '-c',
        `${server}-cli --no-auth-warning INFO persistence | grep -q '^aof_rewrite_in_progress:0' && ls /data/appendonlydir/*.rdb`,
      ],
      env: { REDISCLI_AUTH: credentials.password },
    }),
  }
  return {
    port: 6379,
    volume_path: '/data',
    least_memory_bytes: 32 * 1024 ** 2,
    environment: () => ({}),
    command: (tls) =>
      start(
        ...['--appendonly', 'yes'],
        ...(tls
          ? [
              '--tls-port',
              String(TLS_PORT),
              '--tls-cert-file',
              `${TLS}/server.crt`,
              '--tls-key-file',
              `${TLS}/server.key`,
              '--tls-ca-cert-file',
              `${TLS}/server.crt`,
              '--tls-auth-clients',
              'no',
            ]
          : []),
      ),
    username: () => 'default',
    probe: (credentials) => client(credentials, 'ping'),
    // Before it has a password, the server takes any: it must refuse those who give none.
    login: (credentials) => ({
      argv: [
        'sh',
        '-c',
        `test "$(${server}-cli PING)" != PONG && test "$(printf 'AUTH %s\\nPING\\n' "$PASSWORD" | ${server}-cli | tail -n 1)" = PONG`,
      ],
      env: { PASSWORD: credentials.password },
    }),
    set_password: (credentials, previous) =>
      lines({ ...credentials, password: (previous ?? credentials).password }, [
        `ACL SETUSER default on >${credentials.password}`,
        'ACL SAVE',
      ]),
    revoke: (credentials) =>
      lines(credentials, [
        `ACL SETUSER default resetpass >${credentials.password}`,
        'ACL SAVE',
        // Who is in stays in, whatever becomes of the password: apps come back with theirs, others
        // do not.
        'CLIENT KILL USER default SKIPME yes',
      ]),
    url: urlOf,
    client: (credentials, address) =>
      `${server}-cli -u ${shellWord(urlOf(credentials, address))}${address.tls ? ' --insecure' : ''}`,
    snippets: REDIS,
    tls: { port: TLS_PORT, files: { owner: server, directory: TLS } },
    dump: {
      extension: 'rdb',
      uploads: { begins: Buffer.from('REDIS'), made_with: 'redis-cli --rdb' },
      command: (credentials) => client(credentials, '--rdb', '-'),
    },
    restore,
    count: { read: readKeyspaces, command: (credentials) => client(credentials, 'INFO', 'keyspace') },
  } satisfies Omit<DatabaseEngine, 'name' | 'label' | 'image' | 'lines'>
}
