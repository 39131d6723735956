import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import { createTraffic } from './service.ts'

export default defineModule({
  name: 'traffic',
  create: (
    { directories, ...base }: Base,
    use: { apps: { projectOf(app_id: string): string | undefined } },
  ) =>
    createTraffic({
      ...base,
      directory: directories.access_logs,
      projectOf: (id) => use.apps.projectOf(id),
    }),
  channels: (own) => [{ name: 'apps/:id/logs/access', kind: 'log', noun: 'app', log: own }],
  bounds: { access_logs: (own) => own.prune() },
  start: (own) => own.start(),
  stop: (own) => own.stop(),
})
