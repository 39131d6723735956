import type { Addresses } from '#server/addresses/service'
import { PERSONAL_EVENTS } from '#server/kernel/event-types'
import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import type { SettingsService } from '#server/settings/service'
import { createSystem } from './service.ts'

const DAY_MS = 86_400_000
/** Ended jobs that are kept at most, whatever their age: lists of more take longer than anybody may wait. */
const MOST_JOBS = 100_000
const before = ({ clock }: Base, days: number) => new Date(clock.now() - days * DAY_MS).toISOString()

export default defineModule({
  name: 'system',
  tags: [
    {
      name: 'system',
      description: 'The installation itself: version, background jobs, disk, audit log, search.',
      paths: /^(audit-logs|search)$/,
    },
  ],
  create: (base: Base, use: { addresses: Addresses; settings: Pick<SettingsService, 'server'> }) =>
    createSystem({ ...base, addresses: use.addresses }),
  channels: () => [
    { name: 'system', kind: 'events', access: 'admin', events: () => ({ without: PERSONAL_EVENTS }) },
  ],
  retention: {
    events: (_own, use, base) => base.events.prune(before(base, use.settings.server().event_retention_days)),
    jobs: (_own, use, base) =>
      base.jobs.prune(before(base, use.settings.server().job_retention_days), MOST_JOBS),
  },
  // Started by the ingress, once the edge serves.
  stop: (_own, _use, { jobs }) => jobs.stop(),
})
