import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import type { SettingsService } from '#server/settings/service'
import { createAudit } from './service.ts'

export default defineModule({
  name: 'audit',
  create: ({ db, clock, modules }: Base, _use: { settings: Pick<SettingsService, 'server'> }) =>
    createAudit({
      db,
      clock,
      exists: (type, id) =>
        modules.nouns.includes(type) ? modules.locate(type, id) !== undefined : undefined,
    }),
  retention: { audit_lines: (own, use) => own.prune(use.settings.server().audit_retention_days) },
})
