/** Source: security.md 2.16. */
export const MAX_MESSAGE_BYTES = 64 * 1024
export const MAX_SUBSCRIPTIONS = 100
export const MAX_LOG_SUBSCRIPTIONS = 10
export const LOGS = new Set<string>(['log', 'session'])
/** Of one user, over all connections. */
export const MAX_USER_SUBSCRIPTIONS = 500
export const MAX_USER_LOGS = 30
export const MAX_PER_USER = 50
export const MAX_CONNECTIONS = 2000
export const WINDOW_MS = 10_000
export const MAX_MESSAGES_PER_WINDOW = 300
/** The same for what is typed into open sessions: every key may be a message. */
export const MAX_INPUTS_PER_WINDOW = 2_000
/** Frames of one piece of what arrives that count for its user; with so many it is not read. */
export const MAX_FRAMES_COUNTED = 5_000
/** A connection that holds more than this is full: nothing more is put into it. */
export const FULL_BYTES = 128 * 1024
/** The same once all connections together hold `CROWDED_BYTES`. */
export const FULL_BYTES_CROWDED = 16 * 1024
export const CROWDED_BYTES = 32 * 1024 * 1024
/** How often it is counted what all of them hold. */
export const COUNT_MS = 50
export const FULL_FOR_MS = 30_000
/** A connection that was told to go and has not gone after this is broken off, with all that it holds. */
export const FAREWELL_MS = 2_000
export const PING_MS = 30_000
export const SILENT_MS = 75_000
/** A message that has begun is there after this: what came of it is held by the library, in however many pieces. */
export const WHOLE_MS = 30_000
export const CHECK_MS = 60_000
/** Connections whose rights are asked for again in one go. */
export const CHECKS_AT_ONCE = 50

/** Codes of a closing connection; 44xx follow the HTTP status of the same meaning. */
export const CLOSE = {
  going_away: 1001,
  policy: 1008,
  too_large: 1009,
  unauthorized: 4401,
  too_slow: 4408,
} as const
