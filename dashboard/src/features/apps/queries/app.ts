import { type MaybeRefOrGetter, toValue } from 'vue'
import { api, type Schemas } from '@/api/client'
import { readAhead, useRead } from '@/api/queries'

export type App = Schemas['App']

const ABOUT = ['app', 'deployment', 'domain']
const load = (id: string, signal: AbortSignal) =>
  api.GET('/api/apps/{id}', { params: { path: { id } }, signal })

export const useApp = (id: MaybeRefOrGetter<string>) =>
  useRead(
    ABOUT,
    () => ['app', toValue(id)],
    (signal) => load(toValue(id), signal),
  )
/** Asks for an app whose page is about to open. */
export const appAhead = (id: string): void => readAhead(ABOUT, ['app', id], (signal) => load(id, signal))
