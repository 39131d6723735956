import { defineModule } from '#server/kernel/module'
import { createPreviewsDomain } from './assembly.ts'
import { envContext } from './settings.ts'

export default defineModule({
  name: 'previews',
  tags: [
    {
      name: 'previews',
      description: 'Preview deployments of pull requests.',
      paths: /^apps\/:id\/previews\b/,
    },
  ],
  resources: [
    {
      noun: 'preview',
      prefix: 'prv',
      table: 'previews',
      status_column: 'status',
      quota: 'previews',
      // What only waits takes nothing, and strangers decide how many do.
      counted: 'runner_id IS NOT NULL',
    },
  ],
  sealed: [
    {
      table: 'preview_settings',
      column: 'env',
      key: ['app_id'],
      context: ({ app_id = '' }) => envContext(app_id),
    },
  ],
  create: createPreviewsDomain,
  schedules: [{ name: 'expire', cron: '*/5 * * * *', run: (own) => own.expire() }],
  app: {
    // Copies of databases and variables are those of the project that the app leaves.
    moved: (own, app_id) => own.removeAll(app_id, 'The app was moved to another project.'),
    deleting: (own, app_id) => own.removeAll(app_id, 'The app was deleted.'),
  },
  start: (own) => own.start(),
  stop: (own) => own.stop(),
})
