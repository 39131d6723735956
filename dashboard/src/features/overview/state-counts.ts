import { APP_STATUSES } from '@/lib/app-statuses'

type State = (typeof APP_STATUSES)[number]

/**
 * How many apps are in which state, the most first. Of more than one answer holds, each state is asked for.
 * @param totalOf how many there are in a state.
 */
export async function countStates(
  { data, pages }: { data: readonly { status: State }[]; pages: number },
  totalOf: (state: State) => Promise<number>,
): Promise<[State, number][]> {
  const countOf = (state: State) =>
    pages > 1 ? totalOf(state) : data.filter(({ status }) => status === state).length
  const counts = await Promise.all(
    APP_STATUSES.map(async (state): Promise<[State, number]> => [state, await countOf(state)]),
  )
  return counts.filter(([, number]) => number > 0).sort((a, b) => b[1] - a[1])
}
