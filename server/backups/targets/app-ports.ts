import type { AppsDomain } from '#server/apps/contract'
import type { CronJobs } from '#server/cron/service'
import type { Databases } from '#server/databases/assembly'
import type { DeploymentsDomain } from '#server/deployments/contract'
import type { Domains } from '#server/domains/service'
import type { Variables } from '#server/env/service'
import type { Volumes } from '#server/volumes/service'

/** What a restore of a whole app needs of the domains that its parts are of. */
export interface AppPorts {
  apps: Pick<
    AppsDomain,
    | 'find'
    | 'isNameTaken'
    | 'requireFreeName'
    | 'snapshot'
    | 'restoreSnapshot'
    | 'createForRestore'
    | 'delete'
  >
  env: Pick<Variables, 'snapshot' | 'restore' | 'ownersIn'>
  volumes: Pick<
    Volumes,
    | 'find'
    | 'dataOf'
    | 'lookFor'
    | 'clear'
    | 'replaceData'
    | 'returnData'
    | 'forgetData'
    | 'removeData'
    | 'createForRestore'
    | 'dropUnfilled'
    | 'isNameTaken'
    | 'releaseMounts'
    | 'mountsOf'
    | 'writersOf'
    | 'mount'
    | 'unmount'
    | 'restoreStackMounts'
  >
  databases: Pick<Databases, 'find' | 'inProject' | 'linkedTo' | 'create' | 'isNameTaken' | 'links'>
  deployments: Pick<DeploymentsDomain, 'enqueue' | 'holders' | 'liveCommit'>
  domains: Pick<Domains, 'copies'>
  cron: Pick<CronJobs, 'copies'>
}
