import { join } from 'node:path'
import { defineModule, sealedById } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import { authoritiesOf } from '#server/platform/outbound/authorities'
import { createGuardedClient } from '#server/platform/outbound/client'
import { createDial } from '#server/platform/outbound/dial'
import { createStorageProviders } from './service.ts'

export default defineModule({
  name: 'storage_providers',
  sealed: [sealedById('storage_providers', 'secrets'), sealedById('storage_providers', 'passphrase')],
  create(
    { policy, config, directories, ...base }: Base,
    use: { backups: { countAt(id: string): number; schedules: { usesOf(id: string): string[] } } },
  ) {
    const ca = authoritiesOf(config.ca_file)
    return createStorageProviders({
      ...base,
      ports: {
        client: createGuardedClient(policy, ca ? { ca } : {}),
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
