import { isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { Clock } from '#server/kernel/clock'
import { ApiError } from '#server/kernel/errors'

/** Attempts that one peer may make in a minute, whatever comes of them. Source: spec.md section 8. */
const ATTEMPTS = 5
const WINDOW_MS = 60_000
/**
 * Wrong passwords in a row for one account, from anywhere, before its logins must wait: 2, 4, 8 … seconds.
 */
const FREE_FAILURES = 10
const LONGEST_WAIT_MS = 300_000
const FORGOTTEN_AFTER_MS = 3_600_000
/** Peers and accounts that are remembered; the oldest goes first. */
const REMEMBERED = 50_000

export interface LoginLimit {
  /** Counts an attempt. Throws RATE_LIMITED with the seconds to wait; a refused attempt does not count. */
  attempt(address: string): void
  /** Throws RATE_LIMITED while the account must wait. */
  requireFree(account: string): void
  /** Counts a wrong password or code; with an address, also as an attempt of that peer. */
  failed(account: string, address?: string): void
  succeeded(account: string): void
}

/**
 * What failures of an account are counted by. Where somebody was let in before, and in their session, they are counted
 * apart: else anybody who knows an address could keep its owner out, with one wrong password in five minutes.
 */
export const accountKey = {
  /** Of logins from anywhere, whether or not there is such an account. */
  stranger: (email: string): string => email,
  /** Of logins from where a session of the account began. */
  known: (email: string, peer: string): string => `${email} at ${peer}`,
  /** Of confirmations in a session. */
  insider: (user_id: string): string => `in ${user_id}`,
}

/** One household has one /64 of IPv6 addresses and could otherwise take a new one for each attempt. */
export function peerOf(address: string): string {
  if (!isIPv6(address)) return address
  const bytes = ipaddr.IPv6.parse(address.split('%')[0]!).toByteArray()
  return `${Buffer.from(bytes.slice(0, 8)).toString('hex')}/64`
}

function remember<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key)
  if (map.size >= REMEMBERED) map.delete(map.keys().next().value!)
  map.set(key, value)
}

/**
 * Limits logins, or what `too_many` speaks of, per peer and slows them down per account. Known and unknown
 * accounts are treated alike.
 */
export function createLoginLimit(
  clock: Clock,
  too_many = 'Too many login attempts from this address.',
): LoginLimit {
  const peers = new Map<string, number[]>()
  const accounts = new Map<string, { failures: number; free_ms: number; last_ms: number }>()
  const refuse = (wait_ms: number, sentence: string): never => {
    throw new ApiError('RATE_LIMITED', sentence, undefined, Math.max(1, Math.ceil(wait_ms / 1000)))
  }
  const recentOf = (peer: string) =>
    (peers.get(peer) ?? []).filter((at) => clock.monotonic_ms() - at < WINDOW_MS)
  return {
    requireFree(account) {
      const wait_ms = (accounts.get(account)?.free_ms ?? 0) - clock.monotonic_ms()
      if (wait_ms > 0) refuse(wait_ms, 'Too many failed logins for this account. Wait, then try again.')
    },
    attempt(address) {
      const now = clock.monotonic_ms()
      const peer = peerOf(address)
      const recent = recentOf(peer)
      if (recent.length >= ATTEMPTS)
        refuse(recent[0]! + WINDOW_MS - now, `${too_many} Wait a minute, then try again.`)
      remember(peers, peer, [...recent, now])
    },
    failed(account, address) {
      const now = clock.monotonic_ms()
      if (address !== undefined)
        remember(peers, peerOf(address), [...recentOf(peerOf(address)), now].slice(-ATTEMPTS))
      const known = accounts.get(account)
      const failures = known && now - known.last_ms < FORGOTTEN_AFTER_MS ? known.failures + 1 : 1
      const over = failures - FREE_FAILURES
      const wait_ms = over < 0 ? 0 : Math.min(2 ** (over + 1) * 1000, LONGEST_WAIT_MS)
      remember(accounts, account, { failures, free_ms: now + wait_ms, last_ms: now })
    },
    succeeded: (account) => void accounts.delete(account),
  }
}
