import type { ExecSpec } from '#server/platform/engine/workload'
import type { FakeExecOutcome } from '#server/platform/engine/fake/behaviour'
import type { TestApi } from '#test/support/api'

/** A pretended PostgreSQL: which logins are valid, and what is in it. */
export interface PretendedServer {
  /** Password by login. */
  logins: Map<string, string>
  tables: Record<string, number>
  /** What a restored copy shows instead, when it is to differ. */
  copied?: Record<string, number>
  /** Commands so far, by their program. */
  ran: string[]
  /** Exit code of the next commands of a program. */
  failing: Map<string, number>
  /** What a failing program says; else only that it failed, with its password. */
  complaint?: string
  /** Called while a dump is loaded, which ends no sooner than what it promises. */
  onLoad?: () => void | Promise<void>
}

/** Makes images of PostgreSQL answer commands as a server would; every version shares the one server. */
export function pretendServer(api: TestApi): PretendedServer {
  const server: PretendedServer = {
    logins: new Map(),
    tables: { 'public.notes': 3 },
    ran: [],
    failing: new Map(),
  }
  let restored = false
  const exec = (spec: ExecSpec, given: Buffer): FakeExecOutcome | Promise<FakeExecOutcome> => {
    const { environment = {} } = spec
    const is_held = spec.command[0] === 'sh' && spec.command[3] === 'sh'
    // What is held until the server takes commands reads a line before the command's own input.
    const command = is_held ? spec.command.slice(4) : spec.command
    const input = is_held ? given.subarray(given.indexOf('\n') + 1) : given
    const [program = ''] = command
    server.ran.push(program)
    const exit_code = server.failing.get(program)
    if (exit_code !== undefined)
      return { exit_code, stderr: server.complaint ?? `${program} failed with ${environment.PGPASSWORD}` }
    if (program === 'pg_restore') {
      restored = input.toString() === 'DUMP'
      return Promise.resolve(server.onLoad?.()).then(() => ({ stdout: '' }))
    }
    if (program === 'pg_isready') return { stdout: '' }
    if (program === 'pg_dump') return { stdout: 'DUMP' }
    if (program !== 'psql') return { stdout: '' }
    const script = input.toString()
    for (const [, login, password] of script.matchAll(/ALTER ROLE (\w+) LOGIN PASSWORD '(\w+)'/g))
      server.logins.set(login!, password!)
    for (const [, login] of script.matchAll(/DROP ROLE (\w+)/g)) server.logins.delete(login!)
    if (command.some((argument) => argument === '--tuples-only')) {
      const tables = restored ? (server.copied ?? server.tables) : server.tables
      return {
        stdout: Object.entries(tables)
          .map(([name, count]) => `${name}\t${count}\n`)
          .join(''),
      }
    }
    const { PGUSER = '', PGPASSWORD = '' } = environment
    const is_open = PGUSER === 'postgres' || server.logins.get(PGUSER) === PGPASSWORD
    return { exit_code: is_open ? 0 : 2, stdout: '', stderr: is_open ? '' : 'password authentication failed' }
  }
  api.fakes.engine.behave('postgres:*', { exec })
  return server
}
