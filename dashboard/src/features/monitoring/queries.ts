import { computed, onScopeDispose, ref } from 'vue'
import { type LocationQueryRaw, useRoute, useRouter } from 'vue-router'
import type { Schemas } from '@/api/client'
import type { Span } from '@/lib/chart'

export type Series = Schemas['MetricSeries']
type Point = Schemas['MetricPoint']

const HOUR_MS = 3_600_000
const AGAIN_MS = 30_000

/**
 * The chosen range and the seconds of a point, in the address: a number of hours up to now, whose end moves on while
 * the page is open, or two moments, which stay.
 */
export function useRange() {
  const route = useRoute()
  const router = useRouter()
  const now = ref(Date.now())
  // Samples have no events of their own: they would be six a minute for every page.
  const timer = setInterval(() => {
    if (!document.hidden) now.value = Date.now()
  }, AGAIN_MS)
  onScopeDispose(() => clearInterval(timer))
  const go = (query: LocationQueryRaw) => void router.push({ query: { ...route.query, ...query } })
  const hours = computed({
    get: () => Number(route.query.hours) || 1,
    set: (value) => go({ hours: value === 1 ? undefined : String(value), from: undefined, to: undefined }),
  })
  const step = computed({
    get: () => Number(route.query.step) || 0,
    set: (value) => go({ step: value ? String(value) : undefined }),
  })
  /** The two moments; undefined while the range ends now. */
  const chosen = computed((): Span | undefined => {
    const [from, to] = [Date.parse(String(route.query.from)), Date.parse(String(route.query.to))]
    return Number.isNaN(from) || Number.isNaN(to) ? undefined : { from, to }
  })
  const span = computed(() => chosen.value ?? { from: now.value - hours.value * HOUR_MS, to: now.value })
  return {
    hours,
    step,
    chosen,
    span,
    /** Of what the API is asked. */
    query: () => ({ ...isoOf(span.value), ...(step.value ? { step: step.value } : {}) }),
    choose: (wanted: Span) => go(isoOf(wanted)),
    reset: () => (chosen.value ? go({ from: undefined, to: undefined }) : undefined),
  }
}
export type Range = ReturnType<typeof useRange>
const isoOf = ({ from, to }: Span) => ({
  from: new Date(from).toISOString(),
  to: new Date(to).toISOString(),
})

/** The time that an answer is about: all charts of it share this axis. */
export const spanOf = ({ from, to }: Series): Span => ({ from: Date.parse(from), to: Date.parse(to) })
export const column = (series: Series, name: keyof Point): (number | null)[] =>
  series.points.map((point) => point[name] as number | null)
export const timesOf = (series: Series): string[] => series.points.map(({ at }) => at)
