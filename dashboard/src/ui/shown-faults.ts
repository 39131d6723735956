import {
  hasInjectionContext,
  inject,
  type InjectionKey,
  onScopeDispose,
  provide,
  shallowReactive,
  watchEffect,
} from 'vue'
import { words } from '@/lib/format'
import { messages } from '@/lib/messages'

/** What fields of a form say is wrong with them. A list, since two may say the same. */
type Shown = Map<symbol, string>
const KEY: InjectionKey<Shown> = Symbol('shown faults')
/** For fields outside of a form of their own. */
const page: Shown = shallowReactive(new Map())

/** Begins a form: what its fields show is known to `useShownFaults` inside of it. */
export const provideShownFaults = (): void => provide(KEY, shallowReactive(new Map()))
const current = (): Shown => (hasInjectionContext() ? inject(KEY, page) : page)
export const useShownFaults = (): ReadonlyMap<symbol, string> => current()

/** Tells the form what is said beside one of its fields, for as long as the field is there. */
export function tellShownFault(fault: () => string | undefined): void {
  const shown = current()
  const field = Symbol('field')
  watchEffect(
    () => {
      const text = fault()
      if (text) shown.set(field, text)
      else shown.delete(field)
    },
    { flush: 'sync' },
  )
  onScopeDispose(() => shown.delete(field))
}

/**
 * Refusals of fields that no input shows. Of equal texts one cannot know which field shows its own: all of them
 * are told then, since one too many does no harm and one too few leaves a person without a reason.
 */
export function unshownFaults(
  fields: Readonly<Record<string, string>>,
  shown: ReadonlyMap<symbol, string>,
): [path: string, text: string][] {
  const countOf = (texts: Iterable<string>, text: string) => [...texts].filter((one) => one === text).length
  return Object.entries(fields).filter(
    ([, text]) => countOf(Object.values(fields), text) > countOf(shown.values(), text),
  )
}

/** What is said below a form that was refused: of fields that show their own, that they do. */
export function faultBelow(
  error: string | undefined,
  fields: Readonly<Record<string, string>>,
  shown: ReadonlyMap<symbol, string>,
): string | undefined {
  if (error === undefined || Object.keys(fields).length === 0) return error
  const unshown = unshownFaults(fields, shown)
  return unshown.length === 0
    ? messages.see_fields
    : unshown.map(([path, text]) => `${words(path)}: ${text}`).join(' ')
}
