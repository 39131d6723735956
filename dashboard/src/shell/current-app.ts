import { type ComputedRef, computed, inject, type InjectionKey } from 'vue'
import type { Schemas } from '@/api/client'

/** The app whose pages are open. */
export const APP: InjectionKey<ComputedRef<Schemas['App'] | undefined>> = Symbol('app')

/** The app, for pages that features add to it; they are shown only once it is there. */
export function useCurrentApp(): ComputedRef<Schemas['App']> {
  const app = inject(APP)
  if (!app?.value) throw new Error('This page belongs inside the pages of an app.')
  let last = app.value
  // While the page is being left, the app may be gone already.
  return computed(() => (last = app.value ?? last))
}
