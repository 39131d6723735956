/** How commands end, for scripts. `exec` ends with the code of the command that it ran. */
export const EXIT = {
  /** It was tried and did not work: a deployment that failed, an error of the server. */
  FAILED: 1,
  /** The command was called wrongly. */
  USAGE: 2,
  /** What was named does not exist, or may not be known. */
  NOT_FOUND: 3,
  /** Not logged in, or not allowed. */
  DENIED: 4,
  /** Refused as things are: a field is wrong, a name is taken, the state does not fit. */
  REFUSED: 5,
  /** The server does not answer. */
  UNREACHABLE: 6,
  /** Ctrl-C. */
  INTERRUPTED: 130,
} as const

/** The code for an answer of the API. */
export function exitCodeOf(status: number): number {
  if (status === 401 || status === 403) return EXIT.DENIED
  if (status === 404) return EXIT.NOT_FOUND
  return [400, 409, 413, 415, 422].includes(status) ? EXIT.REFUSED : EXIT.FAILED
}
