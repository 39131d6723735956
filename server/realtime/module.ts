import type { Databases } from '#server/databases/assembly'
import type { DeploymentsDomain } from '#server/deployments/contract'
import type { Identity } from '#server/identity/service'
import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import type { Traffic } from '#server/traffic/service'
import { createRealtime } from './realtime.ts'

export default defineModule({
  name: 'realtime',
  tags: [
    {
      name: 'realtime',
      description: 'Events and logs as they happen, over one WebSocket.',
      paths: /^ws$/,
    },
  ],
  create: (
    { clock, log, events, modules }: Base,
    use: {
      databases: Pick<Databases, 'logs'>
      deployments: Pick<DeploymentsDomain, 'logs' | 'runtime'>
      identity: Pick<Identity, 'actorOf' | 'revocations'>
      traffic: Traffic
    },
  ) =>
    createRealtime({
      clock,
      log,
      events,
      deploymentLogs: use.deployments.logs,
      runtimeLogs: {
        follow: ({ noun, id }, tail, signal, onLine) =>
          (noun === 'app' ? use.deployments.runtime : use.databases.logs).follow(id, tail, signal, onLine),
      },
      accessLogs: use.traffic,
      locate: modules.locate,
      onRevocation: use.identity.revocations.subscribe,
      refresh: (actor) =>
        use.identity.actorOf(
          { user_id: actor.user_id, method: actor.method, credential_id: actor.credential_id },
          { address: actor.address, id: actor.request_id },
        ),
    }),
  stop: (own) => own.stop(),
})
