import { ref } from 'vue'
import { useRouter } from 'vue-router'
import { api, type Schemas } from '@/api/client'
import { useAction } from '@/api/queries'
import { useDraft } from '@/lib/drafts'
import { type DraftRow, importOf, seeAgain } from './draft.ts'
import { isOutdated, type Variable } from './place.ts'

/** What is being written for an app. Values may be secrets: none of it is kept beyond this page. */
export const useVariableDraft = (id: () => string) =>
  useDraft(
    () => `${id()}/variables`,
    () => ({ rows: [] as DraftRow[] }),
    'all',
  )
type VariableDraft = ReturnType<typeof useVariableDraft>

/** Starts a deployment of an app and leads to it; a refusal is told in the corner. */
export function useDeploy(app: () => Schemas['App']) {
  const router = useRouter()
  const deploy = useAction(
    () => api.POST('/api/apps/{id}/deploy', { params: { path: { id: app().id } }, body: {} }),
    { about: ['app', 'deployment'], loud: true },
  )
  return async () => {
    const started = await deploy.run(undefined)
    if (started) await router.push(`/deployments/${started.data.id}`)
  }
}

/** Stores a draft in one step; with a deployment behind it when that is asked for. */
export function useSaveDraft(
  app: () => Schemas['App'],
  draft: VariableDraft,
  known: () => readonly Variable[],
) {
  const deploy = useDeploy(app)
  const deploying = ref(false)
  const save = useAction(
    async () => {
      const rows = draft.value?.rows ?? []
      const params = { path: { id: app().id } }
      try {
        const answer = await api.POST('/api/apps/{id}/env/import', { params, body: importOf(rows) })
        draft.reset()
        return answer
      } catch (error) {
        if (isOutdated(error)) seeAgain(rows, known())
        throw error
      }
    },
    {
      about: ['env', 'variable', 'app'],
      done: ({ data }) => `${data.added.length} added, ${data.changed.length} changed.`,
    },
  )
  async function saveAndDeploy() {
    deploying.value = true
    if (await save.run(undefined)) await deploy()
    deploying.value = false
  }
  return { save, saveAndDeploy, deploying }
}
