import type { Addresses } from '#server/addresses/service'
import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import { createNodes } from './service.ts'

export default defineModule({
  name: 'nodes',
  tags: [{ name: 'nodes', description: 'Servers that run instances: what they have, and how they are.' }],
  create: (base: Base, use: { addresses: Pick<Addresses, 'of_server'> }) =>
    createNodes({
      ...base,
      data_directory: base.config.data_directory,
      address: () => use.addresses.of_server()[0] ?? '127.0.0.1',
    }),
  channels: (own) => [
    { name: 'nodes/:id', kind: 'events', exists: own.exists, events: (node_id) => ({ node_id }) },
  ],
  schedules: [{ name: 'watch', cron: '* * * * *', task: 'metrics', run: (own) => own.watch() }],
})
