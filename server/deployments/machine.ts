import { createMachine } from '#server/kernel/machine'
import type { DeploymentStatus } from './schema.ts'

/**
 * What happens to a deployment. `live` is final only after the soak: a crash in it still fails the
 * deployment.
 */
export type DeploymentEventName = 'build' | 'release' | 'go_live' | 'fail' | 'cancel' | 'supersede'

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
  live: { go_live: 'live', fail: 'failed', cancel: 'cancelled' },
  failed: {},
  cancelled: {},
  superseded: {},
})
