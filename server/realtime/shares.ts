import type { Clock } from '#server/kernel/clock'
import { type Allowance, type Budget, createBudget } from '#server/kernel/budget'
import { MAX_PER_USER } from './limits.ts'

/**
 * What one connection may use. A dashboard that shows a long build log needs some thousand rows at once; what
 * is more comes as fast as the budget grows, and nothing is lost.
 */
const OF_SOCKET = {
  rows: { at_once: 10_000, per_second: 2_500 },
  bytes: { at_once: 8 * 1024 * 1024, per_second: 2 * 1024 * 1024 },
} satisfies Record<string, Allowance>
/** What one user may use over all connections. */
const OF_USER = {
  rows: { at_once: 20_000, per_second: 5_000 },
  bytes: { at_once: 16 * 1024 * 1024, per_second: 4 * 1024 * 1024 },
  starts: { at_once: 500, per_second: 50 },
  messages: { at_once: 2_000, per_second: 200 },
  frames: { at_once: 5_000, per_second: 500 },
  received: { at_once: 4 * 1024 * 1024, per_second: 1024 * 1024 },
  openings: { at_once: 200, per_second: 5 },
} satisfies Record<string, Allowance>

/** Rows and bytes that one connection takes from its own budget and from its user's. */
export interface Share {
  /** Whether another row may be sent now. */
  isLeft(): boolean
  spend(rows: number, bytes: number): void
}

/** What one user uses over all connections; kept for as long as anything of it is used up. */
export interface User {
  id: string
  connections: number
  subscriptions: number
  logs: number
  rows: Budget
  bytes: Budget
  /** Subscriptions that may be begun: each costs a look-up, and a first page. */
  starts: Budget
  messages: Budget
  /** Frames of any kind: what is no message of its own costs as much to read. */
  frames: Budget
  /** Bytes that are read of their connections. */
  received: Budget
  openings: Budget
}

export interface Shares {
  userOf(id: string): User
  /** The share of a new connection of this user. */
  open(user: User): Share
  /** Forgets users who have no connection and nothing to pay back. */
  prune(): void
  /** Whether this user may open one more connection. */
  admits(id: string): boolean
}

export function createShares(clock: Clock): Shares {
  const users = new Map<string, User>()
  return {
    userOf(id) {
      const known = users.get(id)
      if (known) return known
      const user: User = {
        id,
        connections: 0,
        subscriptions: 0,
        logs: 0,
        rows: createBudget(clock, OF_USER.rows),
        bytes: createBudget(clock, OF_USER.bytes),
        starts: createBudget(clock, OF_USER.starts),
        messages: createBudget(clock, OF_USER.messages),
        frames: createBudget(clock, OF_USER.frames),
        received: createBudget(clock, OF_USER.received),
        openings: createBudget(clock, OF_USER.openings),
      }
      users.set(id, user)
      return user
    },
    open(user) {
      const rows = createBudget(clock, OF_SOCKET.rows)
      const bytes = createBudget(clock, OF_SOCKET.bytes)
      const all_rows = [rows, user.rows]
      const all_bytes = [bytes, user.bytes]
      return {
        isLeft: () => rows.isLeft() && bytes.isLeft() && user.rows.isLeft() && user.bytes.isLeft(),
        spend(row_count, byte_count) {
          for (const budget of all_rows) budget.spend(row_count)
          for (const budget of all_bytes) budget.spend(byte_count)
        },
      }
    },
    prune() {
      for (const [id, { connections, rows, bytes, starts, messages, frames, received, openings }] of users) {
        const budgets = [rows, bytes, starts, messages, frames, received, openings]
        if (connections === 0 && budgets.every((budget) => budget.isWhole())) users.delete(id)
      }
    },
    admits(id) {
      const user = users.get(id)
      return !user || (user.connections < MAX_PER_USER && user.openings.isLeft())
    },
  }
}
