import { createMachine } from '#server/kernel/machine'
import type { AppStatus } from './schema.ts'

/** What happens to an app. */
export type AppEventName =
  | 'deploy'
  | 'go_live'
  | 'fail'
  | 'cancel'
  | 'stop'
  | 'halt'
  | 'start'
  | 'rise'
  | 'give_up'
  | 'rebuild'
  | 'crash'
  | 'recover'
  | 'lose'
  | 'delete'
  | 'keep_running'
  | 'keep_crashed'
  | 'keep_stopped'
  | 'keep_failed'

/**
 * `deploy` changes the status only while nothing is meant to serve: a running app stays `running` while its
 * next release is made.
 * `stop` is asked for, `halt` is when it is done; `start` is asked for, and ends with `rise`, or with
 * `rebuild` when its image has to be made anew first. One that fails leaves the app as it was: `give_up`
 * stopped, `crash` crashed, `lose` failed.
 * `lose` is also when the release that just went live failed in its soak, and nothing older serves.
 * `keep_…`: the final backup failed, so that nothing was deleted.
 */
export const appMachine = createMachine<AppStatus, AppEventName>('an app', {
  building: {
    deploy: 'building',
    go_live: 'running',
    fail: 'failed',
    cancel: 'stopped',
    delete: 'deleting',
  },
  starting: {
    deploy: 'starting',
    fail: 'starting',
    cancel: 'starting',
    start: 'starting',
    rise: 'running',
    give_up: 'stopped',
    rebuild: 'building',
    crash: 'crashed',
    lose: 'failed',
    stop: 'stopping',
    delete: 'deleting',
  },
  running: {
    deploy: 'running',
    go_live: 'running',
    fail: 'running',
    cancel: 'running',
    stop: 'stopping',
    crash: 'crashed',
    lose: 'failed',
    delete: 'deleting',
  },
  stopping: {
    deploy: 'stopping',
    fail: 'stopping',
    cancel: 'stopping',
    crash: 'stopping',
    lose: 'stopping',
    rise: 'stopping',
    give_up: 'stopping',
    rebuild: 'stopping',
    stop: 'stopping',
    halt: 'stopped',
    delete: 'deleting',
  },
  stopped: {
    deploy: 'building',
    go_live: 'running',
    start: 'starting',
    fail: 'failed',
    cancel: 'stopped',
    delete: 'deleting',
  },
  failed: {
    deploy: 'building',
    go_live: 'running',
    stop: 'stopping',
    start: 'starting',
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
    stop: 'stopping',
    start: 'starting',
    lose: 'failed',
    delete: 'deleting',
  },
  deleting: {
    fail: 'deleting',
    cancel: 'deleting',
    lose: 'deleting',
    halt: 'deleting',
    rise: 'deleting',
    give_up: 'deleting',
    rebuild: 'deleting',
    crash: 'deleting',
    delete: 'deleting',
    keep_running: 'running',
    keep_crashed: 'crashed',
    keep_stopped: 'stopped',
    keep_failed: 'failed',
  },
})
