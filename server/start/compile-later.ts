import { setFlagsFromString } from 'node:v8'

/**
 * Calls of a function before V8 compiles it for speed, several times its defaults. A server that idles then
 * never gets there, and keeps 9 MB of compilers and compiled code out of memory; a busy one does within its
 * first few thousand requests. Source: `docs/decisions/0073-what-stays-in-memory.md`.
 */
const CALLS = { maglev: 5_000, turbofan: 20_000, osr: 5_000 }

/** Holds for all code from here on; the earlier the better. */
export function compileLater(): void {
  for (const [compiler, calls] of Object.entries(CALLS))
    setFlagsFromString(`--invocation-count-for-${compiler}=${calls}`)
}
