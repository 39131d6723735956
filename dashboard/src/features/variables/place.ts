import { api, type Schemas } from '@/api/client'
import { ApiFault } from '@/api/fault'
import { everyPage, type Page, PER_PAGE } from '@/api/every-page'

export type Variable = Schemas['Variable']
export type SharedVariable = Schemas['SharedVariable']
type Listed = Schemas['SharedVariables']['variables'][number]

/** What a form says of a variable; a value that is absent stays as it is. */
export interface Typed {
  value?: string
  secret?: boolean
  comment: string | null
}
/** Where variables are kept: by an app, or by a project whose apps share them. */
export interface Place {
  shared: boolean
  /** Those of an app are written in a draft. */
  add?(key: string, typed: Typed & { value: string }): Promise<{ data?: unknown }>
  change?(key: string, typed: Typed): Promise<{ data?: unknown }>
  remove(key: string): Promise<{ data?: unknown }>
  /** Shows a secret, which the audit log tells. Shared ones are shown to nobody. */
  reveal?(key: string): Promise<{ data?: { data: { value: string } } }>
}

/** What is sent along with a list, so that no change is lost that came after it was read. */
export const versionsOf = (read: readonly { key: string; version: number }[]): Record<string, number> =>
  Object.fromEntries(read.map(({ key, version }) => [key, version]))
/** Whether somebody else changed variables after they were read. */
export const isOutdated = (error: unknown): boolean =>
  error instanceof ApiFault && error.code === 'PRECONDITION_FAILED'

/** How a list is read. */
export interface Reading<Row> {
  signal?: AbortSignal
  /** Gets the first answer, while the others are still asked for. */
  onFirst?: (page: Page<Row>) => void
}
const signalOf = (signal?: AbortSignal) => (signal ? { signal } : {})

/** All variables of an app: a diff needs every one of them, and an app has a thousand at most. */
export const readVariables = (id: string, { signal, onFirst }: Reading<Variable> = {}): Promise<Variable[]> =>
  everyPage(
    (page) =>
      api.GET('/api/apps/{id}/env', {
        params: { path: { id }, query: { page, per_page: PER_PAGE } },
        ...signalOf(signal),
      }),
    onFirst,
  )

/** All variables that a project shares. */
export const readShared = (
  id: string,
  { signal, onFirst }: Reading<SharedVariable> = {},
): Promise<SharedVariable[]> =>
  everyPage(
    (page) =>
      api.GET('/api/projects/{id}/env', {
        params: { path: { id }, query: { page, per_page: PER_PAGE } },
        ...signalOf(signal),
      }),
    onFirst,
  )

export const ofApp = (id: string): Place => ({
  shared: false,
  remove: (key) => api.DELETE('/api/apps/{id}/env/{key}', { params: { path: { id, key } } }),
  reveal: (key) => api.GET('/api/apps/{id}/env/{key}/reveal', { params: { path: { id, key } } }),
})

/**
 * Puts one variable into the list of a project, or takes it out. The API replaces the whole list,
 * so it is read anew first: what a colleague added meanwhile stays. Values are left out, which
 * keeps them.
 */
async function replaceOne(
  id: string,
  key: string,
  next: Omit<Listed, 'key'> | null,
  tries = 3,
): Promise<{ data?: unknown }> {
  const read = await readShared(id)
  const others: Listed[] = read
    .filter((one) => one.key !== key)
    .map(({ key: name, secret, comment }) => ({ key: name, secret, comment }))
  const variables = next ? [...others, { key, ...next }] : others
  const body = { variables, versions: versionsOf(read) }
  try {
    return await api.PUT('/api/projects/{id}/env', { params: { path: { id } }, body })
  } catch (error) {
    // Between the two a colleague changed another one, most likely: it is read with that.
    if (tries > 1 && isOutdated(error)) return replaceOne(id, key, next, tries - 1)
    throw error
  }
}

export const ofProject = (id: string): Place => ({
  shared: true,
  add: (key, typed) => replaceOne(id, key, typed),
  change: (key, typed) => replaceOne(id, key, typed),
  remove: (key) => replaceOne(id, key, null),
})
