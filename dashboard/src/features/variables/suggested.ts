import type { Schemas } from '@/api/client'

export type Suggestion = Schemas['SuggestedVariable']

/** What the example of the repository names and the app does not have yet, nor its draft. */
export function missingOf(
  suggested: readonly Suggestion[] | undefined,
  known: readonly { key: string }[],
  rows: readonly { key: string }[],
): Suggestion[] {
  const there = new Set([...known, ...rows].map(({ key }) => key))
  return (suggested ?? []).filter(({ key }) => !there.has(key))
}
