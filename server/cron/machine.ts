import { createMachine } from '#server/kernel/machine'
import type { RunStatus } from './schema.ts'

export type RunEvent = 'start' | 'succeed' | 'fail' | 'time_out' | 'cancel'

/** The life of one run; `skipped` and `missed` never began. */
export const runMachine = createMachine<RunStatus, RunEvent>('a run', {
  queued: { start: 'running', fail: 'failed', cancel: 'cancelled' },
  running: {
    start: 'running',
    succeed: 'succeeded',
    fail: 'failed',
    time_out: 'timed_out',
    cancel: 'cancelled',
  },
  succeeded: {},
  failed: {},
  timed_out: {},
  cancelled: {},
  skipped: {},
  missed: {},
})
