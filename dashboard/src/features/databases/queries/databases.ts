import { type MaybeRefOrGetter, toValue } from 'vue'
import { api, type Schemas } from '@/api/client'
import { useAction, useRead } from '@/api/queries'

export type Database = Schemas['Database']

export const useDatabases = (page: MaybeRefOrGetter<number>) =>
  useRead(
    ['database'],
    () => ['databases', toValue(page)],
    (signal) => api.GET('/api/databases', { params: { query: { page: toValue(page) } }, signal }),
    { keep: true },
  )

export const useDatabase = (id: MaybeRefOrGetter<string>) =>
  useRead(
    ['database', 'backup'],
    () => ['database', toValue(id)],
    (signal) => api.GET('/api/databases/{id}', { params: { path: { id: toValue(id) } }, signal }),
  )

export const useEngines = () =>
  useRead(
    [],
    () => ['database-engines'],
    (signal) => api.GET('/api/databases/engines', { signal }),
  )

/** Changes settings of a database; its work goes on in the background. */
export const useChangeDatabase = (id: () => string, done: string) =>
  useAction(
    (body: Schemas['DatabaseChange']) =>
      api.PUT('/api/databases/{id}', { params: { path: { id: id() } }, body }),
    { about: ['database'], done },
  )
