import type Database from 'better-sqlite3'
import { createDatabase } from 'db0'
import sqlite from 'db0/connectors/better-sqlite3'
import { apart, requireStanding } from './standing.ts'

/** The embedded database: one connection, synchronous prepared statements, one writer. */
export interface Db {
  raw: Database.Database
  /** A prepared statement; those that are used stay prepared. */
  sql(text: string): Database.Statement<unknown[], any>
  /**
   * Runs `fn` in one immediate transaction; nested calls join the outer one. Synchronous by type:
   * an asynchronous transaction on the one connection would swallow the writes of other requests.
   * Throws when the request that it is part of has waited, and its caller's right ended meanwhile;
   * see `standing.ts`.
   */
  tx<T>(fn: () => T extends PromiseLike<unknown> ? never : T): T
  /** Runs a part of the transaction under way, which alone is taken back when it throws. */
  part<T>(fn: () => T extends PromiseLike<unknown> ? never : T): T
  /**
   * Stands for all that is in the database: as long as it is the same, no row was written by
   * anybody, here or from another program. It costs less than to read a row.
   */
  state(): string
  /** Runs `fn` once the current transaction has committed (at once outside of one); dropped on rollback. */
  afterCommit(fn: () => void): void
  /**
   * How long a statement waits for the lock of another program. All others wait as long, since
   * there is one thread; what is still locked then fails with SQLITE_BUSY.
   */
  setPatience(wait_ms: number): void
  /** Whether another program keeps this one from writing now; it is looked at without any patience. */
  isLocked(): boolean
  /**
   * Writes what is only noted beside an answer, such as when a session was used last: left out,
   * without any patience and without failing the answer, while another program or a full disk
   * keeps this one from writing. Tells whether it was written.
   */
  note(fn: () => void): boolean
  /** Code of SQLite for why a transaction failed by its file or disk; undefined once one has written again. */
  fault(): string | undefined
  close(): void
}

/** What is no fault of a statement, but of the file, its disk or its file system. */
const DISK_FAULT = /^SQLITE_(FULL|IOERR|READONLY|CANTOPEN|CORRUPT|NOTADB)/

/** Pragmas that must hold on the connection; read back at boot. */
const PRAGMAS: readonly [name: string, value: string | number, expected: unknown][] = [
  ['journal_mode', 'WAL', 'wal'],
  ['synchronous', 'FULL', 2],
  ['foreign_keys', 'ON', 1],
  // For a start and for programs beside the server; the server itself waits for nobody, see
  // `setPatience`.
  ['busy_timeout', 5000, 5000],
  ['trusted_schema', 'OFF', 0],
  ['cell_size_check', 'ON', 1],
]

/** SQLite before this has a bug that can corrupt the write-ahead log when it is reset. */
const OLDEST_SQLITE = [3, 51, 3]

function isOlder(version: string): boolean {
  const parts = version.split('.').map(Number)
  for (const [i, floor] of OLDEST_SQLITE.entries())
    if ((parts[i] ?? 0) !== floor) return (parts[i] ?? 0) < floor
  return false
}

/** Opens (or creates) the database file and asserts its durability settings. Throws when they do not hold. */
export function openDb(path: string): Db {
  const shell = createDatabase(path === ':memory:' ? sqlite({ name: ':memory:' }) : sqlite({ path }))
  return adoptDb(shell.getInstance() as unknown as Database.Database)
}

/** Makes a connection that is open one of ours. Throws when its durability settings do not hold. */
export function adoptDb(raw: Database.Database): Db {
  const version = raw.prepare('SELECT sqlite_version() AS version').pluck().get() as string
  if (isOlder(version))
    throw new Error(`SQLite ${version} is too old; ${OLDEST_SQLITE.join('.')} or later is needed.`)
  for (const [name, value, expected] of PRAGMAS) {
    raw.pragma(`${name} = ${value}`)
    const actual = raw.pragma(name, { simple: true })
    const is_without_file = raw.memory && name === 'journal_mode'
    if (actual !== expected && !is_without_file)
      throw new Error(`The database does not accept ${name}=${value} (it says ${String(actual)}).`)
  }
  return wrap(raw)
}

/** Callers choose filters and orders of lists, so that there are more texts than a process should keep. */
const STATEMENTS_KEPT = 1000

function wrap(raw: Database.Database): Db {
  const statements = new Map<string, Database.Statement<unknown[], any>>()
  let pending: (() => void)[] = []
  const written = raw.prepare('SELECT total_changes()').pluck()
  const written_elsewhere = raw.prepare('PRAGMA data_version').pluck()
  const run = raw.transaction((fn: () => unknown) => fn())
  let fault: { code: string; changes: unknown } | undefined
  const flush = () => {
    const due = pending
    pending = []
    const faults: unknown[] = []
    for (const fn of due) {
      try {
        apart(fn)
      } catch (error) {
        faults.push(error)
      }
    }
    if (faults.length > 0) throw faults[0]
  }
  /** False, at once, where another program has the lock that `fn` needs, or the disk has no room. */
  const impatiently = (fn: () => void): boolean => {
    const patience = raw.pragma('busy_timeout', { simple: true }) as number
    const is_alone = !raw.inTransaction
    raw.pragma('busy_timeout = 0')
    try {
      fn()
      return true
    } catch (error) {
      const code = String((error as { code?: unknown } | null)?.code)
      // On a full disk SQLite takes back all of the transaction that it is part of, which is not
      // for it to hide.
      const is_left_out = is_alone ? /^SQLITE_(BUSY|LOCKED|FULL)/ : /^SQLITE_(BUSY|LOCKED)/
      if (!is_left_out.test(code)) throw error
      return false
    } finally {
      raw.pragma(`busy_timeout = ${patience}`)
    }
  }
  return {
    raw,
    sql(text) {
      const known = statements.get(text)
      // Put at the end again: the first of the map is then the one that was not used for longest.
      if (known) statements.delete(text)
      const statement = known ?? raw.prepare<unknown[], any>(text)
      statements.set(text, statement)
      if (statements.size > STATEMENTS_KEPT) statements.delete(statements.keys().next().value!)
      return statement
    },
    tx<T>(fn: () => T extends PromiseLike<unknown> ? never : T): T {
      if (raw.inTransaction) return fn() as T
      let result: T
      try {
        result = run.immediate(() => {
          requireStanding()
          return fn()
        }) as T
      } catch (error) {
        pending = []
        const code = String((error as { code?: unknown } | null)?.code)
        if (DISK_FAULT.test(code)) fault = { code, changes: written.get() }
        throw error
      }
      if (fault && written.get() !== fault.changes) fault = undefined
      flush()
      return result
    },
    part<T>(fn: () => T extends PromiseLike<unknown> ? never : T): T {
      if (!raw.inTransaction) throw new Error('A part is one of a transaction.')
      const before = [...pending]
      try {
        // A transaction within another one is a savepoint.
        return run(fn) as T
      } catch (error) {
        pending = before
        throw error
      }
    },
    state: () => `${written.get() as number} ${written_elsewhere.get() as number}`,
    afterCommit(fn) {
      pending.push(fn)
      if (!raw.inTransaction) flush()
    },
    setPatience: (wait_ms) => void raw.pragma(`busy_timeout = ${wait_ms}`),
    isLocked: () => !raw.inTransaction && !impatiently(() => void run.immediate(() => undefined)),
    note: impatiently,
    fault: () => fault?.code,
    close() {
      statements.clear()
      if (raw.open) raw.close()
    },
  }
}
