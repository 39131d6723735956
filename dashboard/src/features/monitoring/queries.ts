import { onScopeDispose, ref } from 'vue'
import type { Schemas } from '@/api/client'
import { useQueryText } from '@/lib/route-page'

export type Series = Schemas['MetricSeries']
type Point = Schemas['MetricPoint']

export const RANGES = [
  { value: '1', label: 'An hour' },
  { value: '6', label: 'Six hours' },
  { value: '24', label: 'A day' },
  { value: '168', label: 'A week' },
  { value: '720', label: '30 days' },
]
const HOUR_MS = 3_600_000
const AGAIN_MS = 30_000

/** The chosen range, in the address; its end moves on while the page is open. */
export function useRange() {
  const hours = useQueryText('hours')
  const now = ref(Date.now())
  // Samples have no events of their own: they would be six a minute for every page.
  const timer = setInterval(() => {
    if (!document.hidden) now.value = Date.now()
  }, AGAIN_MS)
  onScopeDispose(() => clearInterval(timer))
  const query = () => {
    const length_ms = (Number(hours.value) || 1) * HOUR_MS
    return {
      from: new Date(now.value - length_ms).toISOString(),
      to: new Date(now.value).toISOString(),
    }
  }
  return { hours, query }
}

export const column = (series: Series, name: keyof Point): (number | null)[] =>
  series.points.map((point) => point[name] as number | null)
export const timesOf = (series: Series): string[] => series.points.map(({ at }) => at)
