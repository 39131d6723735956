import { computed, type MaybeRefOrGetter, toValue } from 'vue'
import { configFields, type FormSchema } from '@/lib/schema-fields'
import { api } from './client.ts'
import { useRead } from './queries.ts'

/** Inputs for the configuration of a provider, as the API describes it. */
export function useConfigFields(schema: string, property: string, value: MaybeRefOrGetter<string | null>) {
  const read = useRead(
    [],
    () => ['openapi'],
    (signal) =>
      api.GET('/api/openapi.json', { signal }) as Promise<{
        data?: { components: { schemas?: Record<string, FormSchema> } }
      }>,
  )
  return computed(() =>
    configFields(read.data.value?.components.schemas ?? {}, schema, property, toValue(value) ?? ''),
  )
}
