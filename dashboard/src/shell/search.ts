import { type Ref, ref, watch } from 'vue'
import { answerOf, api } from '@/api/client'

export interface Found {
  kind: string
  id: string
  name: string
}

/** What has the text in its name, asked for with each letter; an older answer never replaces a newer one. */
export function useFound(text: Ref<string>): Ref<Found[]> {
  const found = ref<Found[]>([])
  let asking: AbortController | undefined
  watch(text, async (typed) => {
    asking?.abort()
    const q = typed.trim()
    if (q === '') {
      found.value = []
      return
    }
    const own = new AbortController()
    asking = own
    try {
      const query = { q: q.slice(0, 200), per_page: 20 }
      const { data } = await answerOf(api.GET('/api/search', { params: { query }, signal: own.signal }))
      if (asking === own) found.value = data
    } catch {
      if (asking === own) found.value = []
    }
  })
  return found
}
