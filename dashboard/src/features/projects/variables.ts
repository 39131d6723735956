import { type MaybeRefOrGetter, toValue } from 'vue'
import { answerOf, api, type Schemas } from '@/api/client'
import { useRead } from '@/api/queries'

export type SharedVariable = Schemas['SharedVariable']
type Listed = Schemas['SharedVariables']['variables'][number]

/** All variables that a project shares, page by page. */
export async function readShared(id: string, signal?: AbortSignal): Promise<SharedVariable[]> {
  const all: SharedVariable[] = []
  for (let page = 1; ; page++) {
    const params = { path: { id }, query: { page, per_page: 100 } }
    const answer = await answerOf(
      api.GET('/api/projects/{id}/env', { params, ...(signal ? { signal } : {}) }),
    )
    all.push(...answer.data)
    if (page >= answer.pages) return all
  }
}

export const useShared = (id: MaybeRefOrGetter<string>) =>
  useRead(
    ['env', 'variable', 'project'],
    () => ['shared-variables', toValue(id)],
    async (signal) => ({ data: await readShared(toValue(id), signal) }),
  )

/**
 * Puts one variable into the list, or takes it out. The API replaces the whole list, so it is read anew first:
 * what a colleague added meanwhile stays. Values are left out, which keeps them.
 */
export async function replaceOne(id: string, key: string, next: Omit<Listed, 'key'> | null) {
  const others: Listed[] = (await readShared(id))
    .filter((one) => one.key !== key)
    .map(({ key: name, secret, comment }) => ({ key: name, secret, comment }))
  const variables = next ? [...others, { key, ...next }] : others
  return api.PUT('/api/projects/{id}/env', { params: { path: { id } }, body: { variables } })
}
