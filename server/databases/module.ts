import { defineModule, sealedById } from '#server/kernel/module'
import { createDatabasesDomain } from './assembly.ts'
import { STORED_BYTES } from './repository.ts'

export default defineModule({
  name: 'databases',
  tags: [{ name: 'databases', description: 'Databases and their links to apps.' }],
  resources: [
    {
      noun: 'database',
      prefix: 'db',
      table: 'databases',
      status_column: 'status',
      quota: 'databases',
      stored_bytes: STORED_BYTES,
    },
  ],
  sealed: [
    sealedById('databases', 'password'),
    sealedById('databases', 'next_password'),
    sealedById('databases', 'previous_password'),
    sealedById('databases', 'admin_password'),
  ],
  create: createDatabasesDomain,
  images: { needed: (own) => own.neededImages() },
  channels: () => [
    {
      name: 'databases/:id',
      kind: 'events',
      noun: 'database',
      events: (database_id) => ({ database_id }),
    },
  ],
  share: (own, project_id) => own.shareIn(project_id),
  schedules: [
    { name: 'measure', cron: '*/15 * * * *', task: 'metrics', run: (own) => own.measure() },
    { name: 'layers', cron: '* * * * *', run: (own) => own.layers.pass() },
  ],
  offers: (own, project_id, name) => own.connectionVariables(project_id, name),
  app: {
    moved: (own, app_id) => own.links.moved(app_id),
    environment: (own, { id }) => own.linkedVariables(id),
    secrets: (own, { id }) => own.links.secrets(id),
  },
})
