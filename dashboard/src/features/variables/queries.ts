import { type MaybeRefOrGetter, toValue } from 'vue'
import { useRead } from '@/api/queries'
import { readShared, readVariables } from './place.ts'

export const useVariables = (app_id: MaybeRefOrGetter<string>) =>
  useRead(
    ['env', 'variable', 'app'],
    () => ['variables', toValue(app_id)],
    async (signal) => ({ data: await readVariables(toValue(app_id), signal) }),
  )

export const useShared = (project_id: MaybeRefOrGetter<string>) =>
  useRead(
    ['env', 'variable', 'project'],
    () => ['shared-variables', toValue(project_id)],
    async (signal) => ({ data: await readShared(toValue(project_id), signal) }),
  )
