import { duration } from '@/lib/format'

interface Step {
  name: string
  status: string
  duration_ms: number | null
}
/** Two durations that differ by less are the same: no two runs take equally long. */
const SAME_MS = 1000
const SAME_SHARE = 0.1

/** How a duration stands against another: undefined where one of them is not known. */
export function against(ms: number | null | undefined, other_ms: number | null | undefined) {
  if (ms === null || ms === undefined || other_ms === null || other_ms === undefined) return undefined
  const delta = ms - other_ms
  if (Math.abs(delta) < Math.max(SAME_MS, other_ms * SAME_SHARE)) return { delta, kind: 'same' as const }
  return { delta, kind: delta > 0 ? ('longer' as const) : ('shorter' as const) }
}
export type Against = NonNullable<ReturnType<typeof against>>

/** `3 s longer than last good`. */
export function againstWords({ delta, kind }: Against, other: string): string {
  return kind === 'same' ? `like ${other}` : `${duration(Math.abs(delta))} ${kind} than ${other}`
}

/** What a step took in the other deployment: only where it did there what it is for. */
export const tookThere = (steps: readonly Step[] | undefined, name: string): number | undefined => {
  const step = steps?.find((one) => one.name === name)
  return step?.status === 'succeeded' ? (step.duration_ms ?? undefined) : undefined
}
