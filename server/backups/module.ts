import { defineModule, sealedById } from '#server/kernel/module'
import { EngineError } from '#server/platform/engine/engine'
import { createBackups } from './domain.ts'

const DAY_MS = 86_400_000

export default defineModule({
  name: 'backups',
  tags: [
    {
      name: 'backups',
      description: 'Backups, restores and their schedules.',
      paths: /^backup-schedules\b/,
    },
  ],
  resources: [
    { noun: 'backup', prefix: 'bkp', table: 'backups', name_column: 'target_name', listed: 'nowhere' },
    { noun: 'backup_schedule', prefix: 'sch', table: 'backup_schedules', listed: 'nowhere' },
  ],
  parts: [
    { prefix: 'bkp', table: 'backups', of: 'target_id' },
    { prefix: 'log', table: 'log_archives', of: 'database_id' },
  ],
  sealed: [sealedById('backups', 'data_key'), sealedById('log_archives', 'data_key')],
  // Dumps and restores that run at once: each takes a core for its compression.
  pools: { backup: 2 },
  create: createBackups,
  jobs: (own) => own.definitions,
  start(own, _use, { log }) {
    own.settleReceived()
    own.recovery.start()
    own.resumePaused().catch((error: unknown) => {
      // Once there is an engine, the reconciler lets them go on; that there is none, others tell.
      if (error instanceof EngineError && error.code === 'unavailable') return
      log.warn('Paused apps could not be looked for', { error })
    })
  },
  channels: () => [
    { name: 'backups/:id', kind: 'events', noun: 'backup', events: (backup_id) => ({ backup_id }) },
  ],
  app: { moved: (own, app_id) => own.appMoved(app_id) },
  // A schedule for each minute whose destination does not answer fails half a million times a year.
  retention: {
    failed_backups: (own, use, { clock }) =>
      own.forgetFailed(
        new Date(clock.now() - use.settings.server().job_retention_days * DAY_MS).toISOString(),
      ),
  },
  schedules: [
    { name: 'due', cron: '* * * * *', task: 'backups', run: (own) => own.schedules.pass() },
    { name: 'log', cron: '* * * * *', task: 'backups', run: (own) => own.point_in_time.run() },
    { name: 'copy', cron: '23 * * * *', task: 'backups', run: (own) => own.daily_copies.run() },
    { name: 'left', cron: '37 * * * *', task: 'backups', run: (own) => own.removeLeft() },
    { name: 'log-tidy', cron: '17 * * * *', task: 'backups', run: (own) => own.point_in_time.tidy() },
  ],
  async stop(own) {
    own.point_in_time.stop()
    await own.daily_copies.stop()
  },
})
