import type { Schemas } from '@/api/client'

type Retention = Schemas['Retention']

/** Rules beside the number, as one reads them; empty where there are none. The API sets them. */
export function otherRules({ count: _count, ...others }: Retention = {}): string {
  return Object.entries(others)
    .map(([rule, most]) => `${rule} ${most}`)
    .join(', ')
}

/** What the field of the number holds. */
export const keptOf = ({ count }: Retention): number | null => count ?? null

/** What is kept by the number in the field, and by the rules beside it, which stay. */
export function retentionOf(keep: number | string | null, before: Retention = {}): Retention {
  const { count: _count, ...others } = before
  return keep === null || keep === '' ? others : { ...others, count: Number(keep) }
}
