import { type MaybeRefOrGetter, toValue } from 'vue'
import { api, type Schemas } from '@/api/client'
import { wholeList } from '@/api/every-page'
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
    (signal) =>
      api.GET('/api/databases/{id}', {
        params: { path: { id: toValue(id) }, query: { credentials: 'masked' } },
        signal,
      }),
  )

export const useEngines = () =>
  useRead(
    [],
    () => ['database-engines'],
    (signal) => wholeList((query) => api.GET('/api/databases/engines', { params: { query }, signal })),
  )

/** Asks for the credentials in clear, which the audit log tells. */
export const useCredentials = (id: () => string) =>
  useAction(
    () => api.GET('/api/databases/{id}', { params: { path: { id: id() }, query: { credentials: 'shown' } } }),
    { loud: true },
  )

/** Changes settings of a database; its work goes on in the background. */
export const useChangeDatabase = (id: () => string, done: string) =>
  useAction(
    (body: Schemas['DatabaseChange']) =>
      api.PUT('/api/databases/{id}', { params: { path: { id: id() } }, body }),
    { about: ['database'], done },
  )
