import { defineModule } from '#server/kernel/module'
import { createAppsDomain } from './assembly.ts'

export default defineModule({
  name: 'apps',
  tags: [{ name: 'apps', description: 'Apps: create, configure, start, stop, read logs, run commands.' }],
  resources: [
    {
      noun: 'app',
      prefix: 'app',
      table: 'apps',
      status_column: 'status',
      quota: 'apps',
      where: 'preview_id IS NULL',
    },
  ],
  parts: [{ prefix: 'app', table: 'apps', of: 'preview_id' }],
  create: createAppsDomain,
  channels: () => [{ name: 'apps/:id', kind: 'events', noun: 'app', events: (app_id) => ({ app_id }) }],
  share: (own, project_id) => own.shares.inProject(project_id),
})
