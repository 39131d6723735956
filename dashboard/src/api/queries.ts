import {
  keepPreviousData,
  QueryClient,
  type UseQueryReturnType,
  useQuery,
  useQueryClient,
} from '@tanstack/vue-query'
import { computed, type MaybeRefOrGetter, nextTick, type Ref, reactive, ref, toValue } from 'vue'
import { tell } from '@/lib/toasts'
import { answerOf } from './client.ts'
import { ApiFault, sentenceOf } from './fault.ts'

/** Everything that was read, kept for as long as some page shows it and a while longer. */
export const query_client = new QueryClient({
  defaultOptions: {
    queries: {
      // Events say when something has changed; nothing is asked for again by itself.
      staleTime: 60_000,
      // A browser without a network may well reach a server on this machine, and says so of one
      // that it does not.
      networkMode: 'always',
      refetchOnWindowFocus: false,
      retry: (failures, error) =>
        failures < 2 && error instanceof ApiFault && (error.status === 0 || error.status >= 502),
    },
  },
})

/** Nouns of the events after which a query is asked again: `app` for `app.updated`. */
export type About = readonly string[]
/** For what is asked for again after any event, such as a list of all that was done. */
export const EVERYTHING: About = ['*']

/**
 * Reads something, and reads it again whenever an event tells that it changed.
 * @param about nouns of the events that concern it.
 * @param key tells this question from every other; holds all that the question depends on.
 */
export function useRead<T>(
  about: About,
  key: () => readonly unknown[],
  load: (signal: AbortSignal) => Promise<{ data?: T }>,
  options: {
    enabled?: MaybeRefOrGetter<boolean>
    keep?: boolean
    /** For what is long: it is replaced as a whole, so that its parts need not be watched. */
    shallow?: boolean
  } = {},
): UseQueryReturnType<T, Error> {
  return useQuery({
    queryKey: computed(() => [...key()]),
    queryFn: ({ signal }) => answerOf(load(signal)),
    meta: { about },
    enabled: () => toValue(options.enabled ?? true),
    ...(options.shallow ? { shallow: true } : {}),
    ...(options.keep ? { placeholderData: keepPreviousData } : {}),
  }) as UseQueryReturnType<T, Error>
}

/**
 * Asks for something that a page which is about to open will read with the same key. What goes
 * wrong is told by the page.
 */
export function readAhead<T>(
  about: About,
  key: readonly unknown[],
  load: (signal: AbortSignal) => Promise<{ data?: T }>,
): void {
  void query_client.prefetchQuery({
    queryKey: [...key],
    queryFn: ({ signal }) => answerOf(load(signal)),
    meta: { about },
  })
}

/** Ids of what is being deleted on a page about it. */
const leaving = new Set<string>()

/** Asks again for everything that is about one of these nouns, unless its page is about to be left. */
export function refresh(about: About): Promise<void> {
  return query_client.invalidateQueries({
    predicate: ({ meta, queryHash }) =>
      ![...leaving].some((id) => queryHash.includes(id)) &&
      ((meta?.about as About | undefined) ?? []).some((noun) => noun === '*' || about.includes(noun)),
  })
}

/**
 * Deletes what open pages are about, and leaves them. What these show is asked for no more meanwhile: it would be
 * answered that it does not exist.
 */
export async function deleteAndLeave<T>(
  id: string,
  act: () => Promise<T>,
  leave: () => Promise<unknown>,
): Promise<T> {
  const predicate = ({ queryHash }: { queryHash: string }) => queryHash.includes(id)
  leaving.add(id)
  try {
    const gone = await act()
    await leave()
    await nextTick()
    query_client.removeQueries({ predicate, type: 'inactive' })
    return gone
  } catch (error) {
    void query_client.invalidateQueries({ predicate })
    throw error
  } finally {
    leaving.delete(id)
  }
}

/**
 * Changes something, and says how it went.
 * @param act what to call; its answer is given back by `run`.
 */
export function useAction<Input, Result>(
  act: (input: Input) => Promise<{ data?: Result }>,
  options: {
    /** Said when it is done; nothing when absent. */
    done?: string | ((result: Result, input: Input) => string | undefined)
    /** Nouns of what changed by it. */
    about?: About
    /** Says a failure in the corner of the page; forms show it themselves. */
    loud?: boolean
    /** The dialog that asks for it, which closes when it is done; after a refusal it stays open as it is. */
    closes?: Ref<boolean>
  } = {},
) {
  useQueryClient()
  const busy = ref(false)
  const fault = ref<ApiFault>()
  return reactive({
    busy,
    /** What went wrong in the last try. */
    error: computed(() => (fault.value ? sentenceOf(fault.value) : undefined)),
    code: computed(() => fault.value?.code),
    /** What is wrong with single fields, by their dotted path. */
    fields: computed(() => fault.value?.fields ?? {}),
    clear: () => (fault.value = undefined),
    /** Resolves with the answer, or with undefined after a refusal. */
    async run(input: Input): Promise<Result | undefined> {
      if (busy.value) return undefined
      busy.value = true
      fault.value = undefined
      try {
        const result = await answerOf(act(input))
        if (options.about) void refresh(options.about)
        const text = typeof options.done === 'function' ? options.done(result, input) : options.done
        if (text) tell('good', text)
        if (options.closes) options.closes.value = false
        return result
      } catch (error) {
        fault.value = error instanceof ApiFault ? error : new ApiFault(0, undefined)
        if (options.loud) tell('bad', sentenceOf(fault.value))
        return undefined
      } finally {
        busy.value = false
      }
    },
  })
}
