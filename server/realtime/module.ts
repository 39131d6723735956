import type { Identity } from '#server/identity/service'
import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import { createRealtime } from './realtime.ts'

export default defineModule({
  name: 'realtime',
  tags: [
    {
      name: 'realtime',
      description: 'Events, logs and terminals as they happen, over one WebSocket.',
      paths: /^ws$/,
    },
  ],
  create(
    { clock, log, events, modules, config, version }: Base,
    use: { identity: Pick<Identity, 'actorOf' | 'revocations'> },
  ) {
    const realtime = createRealtime({
      clock,
      log,
      events,
      channels: modules.channels,
      locate: modules.locate,
      onRevocation: use.identity.revocations.subscribe,
      refresh: (actor) =>
        use.identity.actorOf(
          { user_id: actor.user_id, method: actor.method, credential_id: actor.credential_id },
          { address: actor.address, id: actor.request_id },
        ),
    })
    // Added to it and not copied: the number of connections is read from the object itself.
    return Object.assign(realtime, {
      /** What is said and heard on the WebSocket, as AsyncAPI 3. */
      async document() {
        const { asyncDocument } = await import('./asyncapi.ts')
        return asyncDocument(modules.channels(), {
          version,
          ...(config.public_url ? { public_url: config.public_url } : {}),
        })
      },
    })
  },
  stop: (own) => own.stop(),
})
