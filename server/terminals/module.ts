import type { AppsDomain } from '#server/apps/contract'
import type { SessionChannel } from '#server/kernel/channels'
import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import { createTerminals, type Terminals } from './service.ts'

const channel = (own: Terminals, noun: 'app' | 'database'): SessionChannel => ({
  name: `${noun}s/:id/terminal`,
  kind: 'session',
  noun,
  access: 'developer',
  open: (about, actor, options, outlet) => own.open({ noun, ...about }, actor, options, outlet),
})

export default defineModule({
  name: 'terminals',
  create: (base: Base, use: { apps: Pick<AppsDomain, 'find'> }) =>
    createTerminals({
      ...base,
      liveRelease: (app_id) => use.apps.find(app_id)?.live_release_id ?? undefined,
    }),
  channels: (own) => [channel(own, 'app'), channel(own, 'database')],
  schedules: [{ name: 'idle', cron: '* * * * *', run: (own) => own.tick() }],
  start: (own) => own.recover(),
  stop: (own) => own.stop(),
})
