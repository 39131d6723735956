/** The compilers of V8 that make code fast which is called often. */
export const COMPILERS = ['opt', 'maglev']

/**
 * How Node is started: with a small heap for what is young, with one for what stays that is cleaned up when it
 * grew by half, since what a busy minute took would never be given back, with the call for `cleanWhenQuiet`, and
 * without the compilers, which hold 8 MB and gain a server that idles nothing; `compileOnceBusy` brings them in. The installer's shell scripts
 * spell the same. Source: `docs/decisions/0073-what-stays-in-memory.md`.
 */
export const NODE_ARGUMENTS = [
  '--max-semi-space-size=2',
  '--heap-growing-percent=50',
  '--expose-gc',
  ...COMPILERS.map((name) => `--no-${name}`),
]

/** What the allocator of the C library is told: it would keep what a thread has freed for that thread. */
export const ALLOCATOR = { MALLOC_ARENA_MAX: '1', MALLOC_TRIM_THRESHOLD_: '131072' }
