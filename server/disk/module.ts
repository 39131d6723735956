import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import { EDGE_IMAGE } from '#server/platform/ingress/image'
import type { SettingsService } from '#server/settings/service'
import { createDiskService } from './service.ts'

export default defineModule({
  name: 'disk',
  create: (base: Base, use: { settings: Pick<SettingsService, 'server'> }) =>
    createDiskService({
      ...base,
      data_directory: base.config.data_directory,
      limits: () => use.settings.server(),
      neededImages: async () => [...(await base.modules.images.needed()), EDGE_IMAGE],
      imageRemoved: base.modules.images.removed,
    }),
  schedules: [{ name: 'tidy', cron: '41 * * * *', task: 'builds', run: (own) => own.tidy() }],
})
