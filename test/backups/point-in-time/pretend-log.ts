import type { FakeBehaviour } from '#server/platform/engine/fake/behaviour'
import type { TestApi } from '#test/support/api'

const STEP_MS = 2000

/** A pretended server whose log has pieces: what waits, what was committed, what does not answer. */
export interface PretendedLog {
  waiting: Map<string, Buffer>
  /** Sizes that are told of what waits in place of its own. */
  told: Map<string, number>
  commits: number
  pieces: number
  /** Volumes of servers that answer nothing any more, and how often each was asked since. */
  frozen: Map<string, number>
  /** Copies of all files begin and do not end. */
  holds_copies: boolean
}
const nameOf = (number: number) => `00000001${number.toString(16).toUpperCase().padStart(16, '0')}`

export function pretendLog(api: TestApi): PretendedLog {
  const log: PretendedLog = {
    waiting: new Map(),
    told: new Map(),
    commits: 0,
    pieces: 1,
    frozen: new Map(),
    holds_copies: false,
  }
  const psql = (query: string): string => {
    if (query.includes('clock_timestamp')) {
      // Every look at the time is a little later than the one before.
      api.fakes.clock.advance(STEP_MS)
      return `${api.fakes.clock.iso()}\t${log.commits}:${log.commits}:\n`
    }
    if (!query.includes('pg_switch_wal')) return ''
    const name = nameOf(log.pieces++)
    log.waiting.set(name, Buffer.from(`piece ${name}`))
    return `${name}\n`
  }
  const exec: NonNullable<FakeBehaviour['exec']> = ({ command }, _input, { release_id }) => {
    const asked = log.frozen.get(release_id)
    if (asked !== undefined) {
      log.frozen.set(release_id, asked + 1)
      return { hang: true }
    }
    const [program = ''] = command
    const path = command.at(-1)!
    if (program === 'find') {
      const lines = [...log.waiting].map(
        ([name, bytes]) => `${name}\t${log.told.get(name) ?? bytes.length}\n`,
      )
      return { stdout: lines.join('') }
    }
    if (program === 'cat') return { stdout: log.waiting.get(path.split('/').at(-1)!)! }
    if (program === 'rm') for (const one of command.slice(2)) log.waiting.delete(one.split('/').at(-1)!)
    if (program === 'pg_basebackup') return { stdout: 'ALL FILES', hang: log.holds_copies }
    if (program === 'psql') return { stdout: psql(path) }
    return { stdout: '' }
  }
  api.fakes.engine.behave('postgres:*', { exec })
  return log
}
