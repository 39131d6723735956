import { createMachine } from '#server/kernel/machine'
import type { AppStatus } from './schema.ts'

/** What happens to an app. */
export type AppEventName =
  | 'deploy'
  | 'go_live'
  | 'fail'
  | 'cancel'
  | 'stop'
  | 'start'
  | 'crash'
  | 'recover'
  | 'lose'
  | 'delete'

/**
 * `deploy` changes the status only while nothing is meant to serve: a running app stays `running` while its
 * next release is made.
 * `lose`: the release that just went live failed in its soak, and nothing older serves.
 */
export const appMachine = createMachine<AppStatus, AppEventName>('an app', {
  building: {
    deploy: 'building',
    go_live: 'running',
    fail: 'failed',
    cancel: 'stopped',
    delete: 'deleting',
  },
  running: {
    deploy: 'running',
    go_live: 'running',
    fail: 'running',
    cancel: 'running',
    stop: 'stopped',
    crash: 'crashed',
    lose: 'failed',
    delete: 'deleting',
  },
  stopped: {
    deploy: 'building',
    go_live: 'running',
    start: 'running',
    fail: 'failed',
    cancel: 'stopped',
    delete: 'deleting',
  },
  failed: {
    deploy: 'building',
    go_live: 'running',
    stop: 'stopped',
    start: 'running',
    fail: 'failed',
    cancel: 'failed',
    lose: 'failed',
    delete: 'deleting',
  },
  crashed: {
    deploy: 'crashed',
    go_live: 'running',
    fail: 'crashed',
    cancel: 'crashed',
    crash: 'crashed',
    recover: 'running',
    stop: 'stopped',
    start: 'running',
    lose: 'failed',
    delete: 'deleting',
  },
  deleting: { fail: 'deleting', cancel: 'deleting', lose: 'deleting', delete: 'deleting' },
})
