import { join } from 'node:path'
import { defineModule, sealedById } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import { createDial } from '#server/platform/outbound/dial'
import { createStorageProviders } from './service.ts'

export default defineModule({
  name: 'storage_providers',
  sealed: [sealedById('storage_providers', 'secrets'), sealedById('storage_providers', 'passphrase')],
  create(
    { policy, client, directories, ...base }: Base,
    use: { backups: { countAt(id: string): number; schedules: { usesOf(id: string): string[] } } },
  ) {
    return createStorageProviders({
      ...base,
      ports: {
        client,
        dial: createDial(policy),
        local_directory: join(directories.backups, 'archives'),
        usesOf: (id) => ({
          schedules: use.backups.schedules.usesOf(id),
          backups: use.backups.countAt(id),
        }),
      },
    })
  },
})
