import type { ContainerCommand, Credentials, PointInTime } from '../engine.ts'
import { asAdmin, INSIDE, PSQL } from './postgres-admin.ts'

const VOLUME = '/var/lib/postgresql/data'
const DATA = `${VOLUME}/pgdata`
/** Finished pieces of the log, until Portreeve took them. Beside the data: a copy of those leaves it out. */
const SPOOL = `${VOLUME}/archive`
/** Pieces that a server reads while it recovers. */
const REPLAY = `${VOLUME}/replay`
/** Set by the server itself once too much waits: from then on pieces are left out, until somebody looks. */
const GAP = 'gap'
/** Pieces of 16 MiB that may wait: 4 GiB, whether Portreeve runs or not. */
const MOST_WAITING = 256
const PIECE = /^[0-9A-F]{24}$/
const PIECES_PER_LOG = 0x100

const request = (credentials: Credentials, query: string): ContainerCommand => ({
  argv: [...PSQL, '--tuples-only', '--no-align', '--field-separator=\t', `--command=${query}`],
  env: asAdmin(credentials),
})
const settings = (values: Record<string, string>): string[] =>
  Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`])
const command = (...argv: string[]): ContainerCommand => ({ argv, env: {} })

/** Runs inside the server for each piece. A file has its name only once it is whole and on the disk. */
const ARCHIVE_COMMAND = [
  `test -e ${SPOOL}/%f || test -e ${SPOOL}/${GAP}`,
  `{ test $(ls -1 ${SPOOL} | wc -l) -ge ${MOST_WAITING} && touch ${SPOOL}/${GAP}; }`,
  `{ cp %p ${SPOOL}/%f.part && sync ${SPOOL}/%f.part && mv ${SPOOL}/%f.part ${SPOOL}/%f; }`,
].join(' || ')

/** PostgreSQL's continuous archiving: base backups, and segments of its write-ahead log. */
export const postgresLog: PointInTime = {
  keep_log: settings({ archive_mode: 'on', archive_command: ARCHIVE_COMMAND }),
  prepare: () => command('install', '-d', '-o', 'postgres', '-m', '700', SPOOL),
  // Transactions that write are part of a snapshot; while it stays the same, none began or ended.
  look: (credentials) =>
    request(
      credentials,
      `SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), pg_current_snapshot()`,
    ),
  // What it answers is one byte behind the last piece that is whole, wherever the switch happened.
  cut: (credentials) => request(credentials, 'SELECT pg_walfile_name(pg_switch_wal() - 1)'),
  waiting: () => command('find', SPOOL, '-maxdepth', '1', '-type', 'f', '-printf', '%f\\t%s\\n'),
  isPiece: (name) => PIECE.test(name),
  piece_bytes: 16 * 1024 ** 2,
  gap: GAP,
  read: (piece) => command('cat', `${SPOOL}/${piece}`),
  remove: (names) => command('rm', '-f', ...names.map((name) => `${SPOOL}/${name}`)),
  next(piece) {
    const [log, number] = [8, 16].map((from) => Number.parseInt(piece.slice(from, from + 8), 16)) as [
      number,
      number,
    ]
    const count = log * PIECES_PER_LOG + number + 1
    const hex = (value: number) => value.toString(16).toUpperCase().padStart(8, '0')
    return piece.slice(0, 8) + hex(Math.floor(count / PIECES_PER_LOG)) + hex(count % PIECES_PER_LOG)
  },
  copy: (credentials) => ({
    argv: [
      ...['pg_basebackup', '--pgdata=-', '--format=tar', '--wal-method=none'],
      ...['--checkpoint=fast', '--no-manifest'],
    ],
    env: asAdmin(credentials),
  }),
  recover: {
    before: () => [
      command('install', '-d', '-o', 'postgres', '-m', '700', DATA, REPLAY),
      command('install', '-o', 'postgres', '-m', '600', '/dev/null', `${DATA}/recovery.signal`),
    ],
    unpack: () => command('tar', '--extract', `--directory=${DATA}`),
    put: () => command('tar', '--extract', `--directory=${REPLAY}`),
    after: () => [command('chown', '-R', 'postgres', DATA, REPLAY)],
    load: (at) => [
      'postgres',
      ...settings({
        restore_command: `cp ${REPLAY}/%f %p`,
        recovery_target_timeline: 'current',
        recovery_target_action: 'promote',
        lc_messages: 'C',
        // Names of zones, «Z» too, are not known yet where arguments are read.
        ...(at === null ? {} : { recovery_target_time: at.replace('T', ' ').replace('Z', '+00') }),
      }),
    ],
    ended_early: /recovery ended before configured recovery target was reached/,
    recovered: () => ({
      argv: [...PSQL, '--command=SELECT 1 / (NOT pg_is_in_recovery())::int'],
      env: INSIDE,
    }),
    adopt: ({ admin_password, database, username }, from) => ({
      argv: PSQL,
      env: INSIDE,
      stdin: [
        `ALTER ROLE postgres PASSWORD '${admin_password}';`,
        `SELECT 'ALTER DATABASE "${from}" RENAME TO "${database}"' FROM pg_database WHERE datname = '${from}' AND datname <> '${database}' \\gexec`,
        `SELECT format('ALTER ROLE %I NOLOGIN PASSWORD NULL', rolname) FROM pg_roles WHERE rolname ~ '^app_[0-9]+$' AND rolname <> '${username}' \\gexec`,
      ].join('\n'),
    }),
    clean: () => command('rm', '-r', '-f', REPLAY),
  },
}
