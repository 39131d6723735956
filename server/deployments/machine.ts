import { createMachine } from '#server/kernel/machine'
import type { DeploymentStatus } from './schema.ts'

/**
 * What happens to a deployment. Of an app's deployments one is `live`: the one that has the traffic, or had it
 * when the app was stopped. The next one to go live replaces it, and restores it when that one does not last.
 */
export type DeploymentEventName =
  | 'build'
  | 'release'
  | 'go_live'
  | 'fail'
  | 'cancel'
  | 'supersede'
  | 'replace'
  | 'restore'

export const deploymentMachine = createMachine<DeploymentStatus, DeploymentEventName>('a deployment', {
  queued: {
    build: 'building',
    release: 'releasing',
    fail: 'failed',
    cancel: 'cancelled',
    supersede: 'superseded',
  },
  building: { build: 'building', release: 'releasing', fail: 'failed', cancel: 'cancelled' },
  releasing: { release: 'releasing', go_live: 'live', fail: 'failed', cancel: 'cancelled' },
  live: { go_live: 'live', fail: 'failed', cancel: 'cancelled', replace: 'replaced' },
  replaced: { restore: 'live' },
  failed: {},
  cancelled: {},
  superseded: {},
})
