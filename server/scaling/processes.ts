import type { Limits, Processes } from '#server/apps/schema'
import { own } from '#server/kernel/own'

/** Limits of `web`, and the other processes with theirs. */
export interface Sizes {
  limits: Partial<Limits>
  processes: Processes
}

/** Sizes after a change; what the change leaves out stays. */
export function sizesAfter(before: Sizes, { limits, processes = {} }: Partial<Sizes>): Sizes {
  const names = new Set([...Object.keys(before.processes), ...Object.keys(processes)])
  return {
    limits: { ...before.limits, ...limits },
    processes: Object.fromEntries(
      [...names].map((name) => {
        const known = own(before.processes, name)
        const change = own(processes, name)
        const both = { ...known?.limits, ...change?.limits }
        return [name, { ...known, ...change, ...(Object.keys(both).length > 0 ? { limits: both } : {}) }]
      }),
    ),
  }
}
