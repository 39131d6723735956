import { own } from './own.ts'

/** Limits of `web`, and the other processes with theirs. */
interface Sizes<Limits extends object, Process extends { limits?: Limits }> {
  limits: Limits
  processes: Record<string, Process>
}

/** Sizes after a change; what the change leaves out stays. */
export function sizesAfter<Limits extends object, Process extends { limits?: Limits }>(
  before: Sizes<Limits, Process>,
  { limits, processes = {} }: { limits?: Limits; processes?: Record<string, Process> },
): Sizes<Limits, Process> {
  const names = new Set([...Object.keys(before.processes), ...Object.keys(processes)])
  return {
    limits: { ...before.limits, ...limits },
    processes: Object.fromEntries(
      [...names].map((name) => {
        const known = own(before.processes, name)
        const change = own(processes, name)
        const both = { ...known?.limits, ...change?.limits }
        const sized = { ...known, ...change, ...(Object.keys(both).length > 0 ? { limits: both } : {}) }
        return [name, sized as Process]
      }),
    ),
  }
}
