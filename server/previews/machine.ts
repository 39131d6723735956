import { createMachine } from '#server/kernel/machine'
import type { PreviewStatus } from './schema.ts'

/** What happens to a preview. */
export type PreviewEvent = 'deploy' | 'serve' | 'stop' | 'fail' | 'remove'

/** `waiting`: a fork of which nothing was approved yet. A preview that serves goes on while it is deployed. */
export const previewMachine = createMachine<PreviewStatus, PreviewEvent>('a preview', {
  waiting: { deploy: 'building', remove: 'removing' },
  building: { deploy: 'building', serve: 'running', stop: 'stopped', fail: 'failed', remove: 'removing' },
  running: { deploy: 'running', serve: 'running', stop: 'stopped', fail: 'failed', remove: 'removing' },
  stopped: { deploy: 'building', serve: 'running', stop: 'stopped', fail: 'failed', remove: 'removing' },
  failed: { deploy: 'building', serve: 'running', stop: 'stopped', fail: 'failed', remove: 'removing' },
  removing: { remove: 'removing' },
})
