/** Without anything typed a terminal ends after this. */
export const IDLE_MS = 30 * 60_000
export const LONGEST_MS = 12 * 3_600_000
export const MAX_TERMINALS = 50
/** Of these, for users who have none: neither many terminals of few nor one project takes the last. */
export const KEPT_FOR_FIRST = 10
export const MAX_PER_PROJECT = 16
export const MAX_PER_USER = 8
/** Characters that are held while the connection is full; then the program is held. */
export const HELD_CHARS = 64 * 1024
/** Characters of one message. */
export const MESSAGE_CHARS = 16 * 1024
/** What was typed and the program has not taken; more is refused. */
export const MAX_UNTAKEN_BYTES = 256 * 1024
