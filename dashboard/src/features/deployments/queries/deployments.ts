import { type MaybeRefOrGetter, toValue } from 'vue'
import { api, type Schemas } from '@/api/client'
import { useRead } from '@/api/queries'

export type Deployment = Schemas['Deployment']
export type DeploymentSummary = Schemas['DeploymentSummary']
export interface DeploymentFilter {
  page: number
  per_page?: number
  app_id?: string
  status?: DeploymentSummary['status']
}

/** A page of deployments, newest first. */
export const useDeployments = (filter: MaybeRefOrGetter<DeploymentFilter>) =>
  useRead(
    ['deployment'],
    () => ['deployments', toValue(filter)],
    (signal) => api.GET('/api/deployments', { params: { query: { ...toValue(filter) } }, signal }),
    { keep: true },
  )

export const useDeployment = (id: MaybeRefOrGetter<string>) =>
  useRead(
    ['deployment'],
    () => ['deployment', toValue(id)],
    (signal) => api.GET('/api/deployments/{id}', { params: { path: { id: toValue(id) } }, signal }),
    { enabled: () => toValue(id) !== '' },
  )

/** What differs between two deployments. */
export const useComparison = (id: MaybeRefOrGetter<string>, other: MaybeRefOrGetter<string>) =>
  useRead(
    ['deployment'],
    () => ['comparison', toValue(id), toValue(other)],
    (signal) =>
      api.GET('/api/deployments/{id}/compare', {
        params: { path: { id: toValue(id) }, query: { with: toValue(other) } },
        signal,
      }),
    { enabled: () => toValue(other) !== '', keep: true },
  )

/** The app that a deployment belongs to, for its name and its rights. */
export const useAppOf = (id: () => string | undefined) =>
  useRead(
    ['app'],
    () => ['app', id()],
    (signal) => api.GET('/api/apps/{id}', { params: { path: { id: id() ?? '' } }, signal }),
    { enabled: () => id() !== undefined },
  )
