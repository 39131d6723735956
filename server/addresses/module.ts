import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import type { SettingsService } from '#server/settings/service'
import { createAddresses } from './service.ts'

export default defineModule({
  name: 'addresses',
  create: ({ config }: Base, use: { settings: Pick<SettingsService, 'domain'> }) =>
    createAddresses(config, () => use.settings.domain()),
})
