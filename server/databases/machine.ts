import { createMachine } from '#server/kernel/machine'
import type { DatabaseStatus } from './schema.ts'

/** What happens to a database. */
export type DatabaseEventName = 'ready' | 'fill' | 'fail' | 'stop' | 'restore' | 'upgrade' | 'keep' | 'delete'

/**
 * `ready`: its server answers. `fill`: it does, and waits for the data that it was made for. `fail`: it does not, although it should. `keep`: what was tried did not work
 * out, and the data is as it was before.
 */
export const databaseMachine = createMachine<DatabaseStatus, DatabaseEventName>('a database', {
  creating: { ready: 'running', fill: 'restoring', fail: 'failed', delete: 'deleting' },
  running: {
    ready: 'running',
    fail: 'failed',
    stop: 'stopped',
    restore: 'restoring',
    upgrade: 'upgrading',
    delete: 'deleting',
  },
  stopped: { ready: 'running', fail: 'failed', stop: 'stopped', restore: 'restoring', delete: 'deleting' },
  failed: { ready: 'running', fail: 'failed', stop: 'stopped', restore: 'restoring', delete: 'deleting' },
  restoring: { ready: 'running', keep: 'running', fail: 'failed', delete: 'deleting' },
  upgrading: { ready: 'running', keep: 'running', fail: 'failed', delete: 'deleting' },
  deleting: { fail: 'failed', delete: 'deleting' },
})
