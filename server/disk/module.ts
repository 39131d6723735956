import { defineModule } from '#server/kernel/module'
import { holdSpareFile } from '#server/kernel/spare-file'
import type { Base } from '#server/platform/base'
import { EDGE_IMAGE } from '#server/platform/ingress/image'
import type { SettingsService } from '#server/settings/service'
import { createDiskService } from './service.ts'
import { createSpareRoom } from './spare-room.ts'

export default defineModule({
  name: 'disk',
  create(base: Base, use: { settings: Pick<SettingsService, 'server'> }) {
    const { data_directory } = base.config
    const room = createSpareRoom(base.db, data_directory)
    return {
      ...createDiskService({
        ...base,
        data_directory,
        limits: () => use.settings.server(),
        neededImages: async () => [...(await base.modules.images.needed()), EDGE_IMAGE],
        imageRemoved: base.modules.images.removed,
      }),
      /** Keeps what Portreeve needs on a full disk; nothing in a database that is in memory. */
      async holdRoom(): Promise<void> {
        await room.hold()
        await holdSpareFile(data_directory)
      },
      stop: () => room.stop(),
    }
  },
  schedules: [
    { name: 'tidy', cron: '41 * * * *', task: 'builds', run: (own) => own.tidy() },
    { name: 'room', cron: '* * * * *', run: (own) => own.holdRoom() },
  ],
  start(own, _use, { log }) {
    // Whoever fills the disk may do it in the first minute.
    own.holdRoom().catch((error: unknown) => log.warn('Room for a full disk could not be made', { error }))
  },
  stop: (own) => own.stop(),
})
