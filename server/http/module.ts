import type { Audit } from '#server/audit/service'
import type { Identity } from '#server/identity/service'
import type { IngressService } from '#server/ingress/service'
import { createHeldBytes } from '#server/kernel/held-bytes'
import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import type { Projects } from '#server/projects/service'
import { createChanges } from './changes.ts'
import type { HttpPorts } from './context.ts'
import { createIdempotency, idempotencyContext } from './idempotency.ts'
import type { DocumentFacts } from './openapi.ts'
import { createWatch } from './standing.ts'
import { createUnlocked } from './unlocked.ts'
import { createEntrance, createRequestTurns } from './turns.ts'

/** Bytes of bodies under way: of one user, who sends eight of the largest at once, and of all together. */
const MOST_HELD = {
  of_one: 8 * 1024 * 1024,
  of_all: 128 * 1024 * 1024,
  refusal: 'Too many large bodies are under way. Send this one again in a moment.',
}
/** The same of answers that their clients did not take yet; one more is begun than fits. */
const MOST_UNTAKEN = {
  of_one: 16 * 1024 * 1024,
  of_all: 128 * 1024 * 1024,
  refusal: 'Too many large answers wait to be taken. Read them, then ask again.',
}

export default defineModule({
  name: 'http',
  tags: [{ name: 'openapi', description: 'This description.', paths: /^(openapi|asyncapi)\./ }],
  sealed: (['answer', 'body_hash'] as const).map((column) => ({
    table: 'idempotency',
    column,
    key: ['scope', 'key'],
    context: ({ scope = '', key = '' }) => idempotencyContext(column, scope, key),
  })),
  create(
    { db, clock, secrets, log, modules, config, version }: Base,
    use: {
      audit: Pick<Audit, 'refused'>
      identity: Pick<Identity, 'actorOf' | 'authenticate' | 'client' | 'revocations'>
      ingress: Pick<IngressService, 'cameIn'>
      projects: Pick<Projects, 'default'>
      settings: { server(): { cors_origins: readonly string[] } }
    },
  ) {
    const idempotency = createIdempotency(db, clock, secrets)
    const ports: HttpPorts['http'] = {
      log,
      locate: modules.locate,
      cors_origins: () => use.settings.server().cors_origins,
      default_project: () => use.projects.default(),
      idempotency,
      bodies: createHeldBytes(MOST_HELD),
      answers: createHeldBytes(MOST_UNTAKEN),
      enter: createEntrance(),
      turn: createRequestTurns(),
      unlocked: createUnlocked(db),
      changes: createChanges(clock),
      authenticate: use.identity.authenticate,
      watch: createWatch(db, clock),
      client: use.identity.client,
      refresh: (actor) =>
        use.identity.actorOf(
          { user_id: actor.user_id, method: actor.method, credential_id: actor.credential_id },
          { address: actor.address, id: actor.request_id },
        ),
      onRevocation: (listener) => use.identity.revocations.subscribe(({ user_id }) => listener(user_id)),
      cameByEdge: (hostname, actor) => use.ingress.cameIn(hostname, actor),
      refused: (facts, code, actor, access) => use.audit.refused({ ...facts, code, access }, actor),
    }
    /** What the API document says of this installation. */
    const document: DocumentFacts = {
      version,
      tags: modules.tags,
      ...(config.public_url ? { public_url: config.public_url } : {}),
    }
    return { ...ports, document, forgetAnswers: idempotency.prune }
  },
  retention: { answers: (own) => own.forgetAnswers() },
})
