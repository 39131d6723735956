import type { Apps } from '#server/apps/service'
import type { DeploymentsDomain } from '#server/deployments/contract'
import { invalid } from '#server/kernel/errors'
import { defineModule, sealedById } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import { OutboundError } from '#server/platform/outbound/outbound'
import { CRON_POOL } from './run-job.ts'
import { createCron } from './service.ts'

const DAYS_KEPT = 90

export default defineModule({
  name: 'cron',
  tags: [{ name: 'cron', description: 'Scheduled commands and calls.', paths: /^cron-jobs\b/ }],
  resources: [{ noun: 'cron_job', prefix: 'cron', table: 'cron_jobs' }],
  parts: [{ prefix: 'run', table: 'cron_runs', of: 'app_id' }],
  sealed: [sealedById('cron_jobs', 'request')],
  pools: CRON_POOL,
  create(
    base: Base,
    use: {
      apps: Pick<Apps, 'find'>
      deployments: Pick<DeploymentsDomain, 'runtime' | 'declaredCronJobs'>
    },
  ) {
    return createCron({
      ...base,
      ports: {
        app: (id) => use.apps.find(id),
        declared: (app_id) => use.deployments.declaredCronJobs(app_id),
        command: (...requested) => use.deployments.runtime.runCommand(...requested),
        hasToWait: (app_id) => use.deployments.runtime.hasToWait(app_id),
        removeCommand: (purpose) => use.deployments.runtime.removeCommand(purpose),
        redact: (app_id, text) => use.deployments.runtime.redactSoon(app_id, text),
        client: base.client,
        checkUrl(url) {
          try {
            base.policy.checkUrl(url)
          } catch (error) {
            if (error instanceof OutboundError) throw invalid('http.url', error.message)
            throw error
          }
        },
      },
    })
  },
  schedules: [{ name: 'due', cron: '* * * * *', task: 'cron', run: (own) => own.tick() }],
  app: {
    history: (own, app_id) => own.forgetHistory(app_id),
    removed: (own, app_id) => own.release(app_id),
  },
  retention: {
    cron_runs: (own, _use, { clock }) =>
      own.prune(new Date(clock.now() - DAYS_KEPT * 86_400_000).toISOString()),
  },
  start: (own) => own.start(),
  stop: (own) => own.stop(),
})
