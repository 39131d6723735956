import { type InjectionKey, inject, provide, reactive } from 'vue'
import type { Mark, Span } from '@/lib/chart'

/** What the charts of a page have in common. */
export interface ChartGroup {
  span: Span
  marks: readonly Mark[]
  /** The moment whose values all charts tell. */
  cursor: number | undefined
  /** What is being dragged over or chosen by keys, not yet shown. */
  begun: Span | undefined
  /** The chart whose marks are stops of the Tab key: they are the same in all. */
  first: symbol | undefined
  /** Whether a range can be chosen here. */
  readonly chooses: boolean
  choose(span: Span): void
  reset(): void
}
const KEY: InjectionKey<ChartGroup> = Symbol('charts')

/** Makes the charts inside a component one group. */
export function provideCharts(
  shared: Pick<ChartGroup, 'chooses' | 'choose' | 'reset'> & { span(): Span; marks(): readonly Mark[] },
): void {
  const { span, marks, ...rest } = shared
  const group = reactive({
    ...rest,
    cursor: undefined,
    begun: undefined,
    first: undefined,
    get span() {
      return span()
    },
    get marks() {
      return marks()
    },
  })
  provide(KEY, group as ChartGroup)
}

/** The group that a chart belongs to; a group of its own when it stands alone. */
export function useCharts(alone: () => Span): ChartGroup {
  const found = inject(KEY, undefined)
  if (found) return found
  return reactive({
    cursor: undefined,
    begun: undefined,
    first: undefined,
    marks: [],
    chooses: false,
    choose: () => undefined,
    reset: () => undefined,
    get span() {
      return alone()
    },
  }) as ChartGroup
}
