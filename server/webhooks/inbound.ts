import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { ApiError, notFound } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import { createPace } from '#server/kernel/pace'
import type { Secrets } from '#server/kernel/secrets'
import { createHookBodies, hmacOf } from './body.ts'
import { createCallLimit } from './call-limit.ts'
import type { DeliveryRepository, DeliveryRow } from './deliveries.ts'
import { checked } from './forges/checked.ts'
import { type ForgeEvent, other, type PushEvent, type ReadHeader } from './forges/forge.ts'
import { findForge } from './forges/forges.ts'
import { CONTENTS_KEPT, FORGOTTEN, keptContent } from './kept-content.ts'
import { deployedBy, hasSkipMarker, movesOf, touchesNothing } from './push-rules.ts'
import { createReader } from './read-apart.ts'
import type { WebhookRepository, WebhookRow } from './repository.ts'
import { type PreviewPorts, showPullRequest } from './pull-requests.ts'
import { isSameRepository } from './repository-address.ts'
import type { InboundResult } from './schema.ts'
import { secretContext } from './sealed.ts'

/** What of an app a hook needs to know. */
export interface HookedApp {
  id: string
  project_id: string
  name: string
  git_url: string | null
  branch: string | null
  auto_deploy: boolean
  watch_paths: string[]
  last_branch: string | null
}
export interface InboundPorts {
  app(id: string): HookedApp | undefined
  apps(project_id: string): HookedApp[]
  /** Queues a deployment in the current transaction and returns its id. */
  deploy(app_id: string, trigger: 'push' | 'hook', commit: { branch?: string; commit?: string }): string
  previews: PreviewPorts
}
export interface InboundOptions {
  db: Db
  clock: Clock
  secrets: Secrets
  webhooks: WebhookRepository
  deliveries: DeliveryRepository
  ports: InboundPorts
}

export const digestOf = (token: string): string => createHash('sha256').update(token).digest('hex')

/** A delivery with the same id within this time is a repeat. Source: security.md 2.13. */
const REPEAT_MS = 86_400_000
/** Event of an entry about calls that were refused. */
const REFUSED = 'refused'
const DEPLOY = 'deploy'
const UNSIGNED = 'The signature does not fit the secret of this webhook.'
const SAME_SECRET = 'Enter the same secret here and at the forge.'
const UNTOLD = JSON.stringify(other('Nothing is kept of a call whose signature does not fit.'))
const UNTOUCHED: ReadonlySet<string> = new Set()

/** What comes in from forges and through deploy hooks. */
export function createInbound({ db, clock, secrets, webhooks, deliveries, ports }: InboundOptions) {
  const limit = createCallLimit(clock)
  const bodies = createHookBodies()
  const read = createReader()
  const knownHook = (token: string, kind: WebhookRow['kind']): WebhookRow => {
    const hook = webhooks.byToken(digestOf(token))
    if (hook?.kind !== kind) throw notFound('webhook')
    return hook
  }
  const record = (hook: WebhookRow, row: Partial<DeliveryRow> & Pick<DeliveryRow, 'event' | 'content'>) => {
    const at = clock.iso()
    const delivery: DeliveryRow = {
      id: newId('dlv'),
      webhook_id: hook.id,
      direction: 'in',
      repeat_key: null,
      status: 'succeeded',
      attempts: 1,
      response_status: null,
      detail: null,
      duration_ms: null,
      deployment_ids: '[]',
      next_attempt_at: null,
      created_at: at,
      finished_at: at,
      ...row,
    }
    deliveries.insert(delivery)
    deliveries.forgetContent(hook.id, CONTENTS_KEPT, FORGOTTEN)
    return delivery.id
  }

  /** Tells of calls that were refused before anything of them was read: all of a kind in a row are one entry. */
  const noteRefusal = (hook: WebhookRow, { status }: ApiError, detail: string): void =>
    db.tx(() => {
      if (deliveries.refusedAgain({ webhook_id: hook.id, event: REFUSED, detail, at: clock.iso() })) return
      const told = { content: UNTOLD, detail }
      record(hook, { event: REFUSED, status: 'failed', response_status: status, ...told })
    })
  /** Does what the holder of a secret asks for; a refusal goes to the caller, and into the log with its reason. */
  const telling = <T>(refused: (refusal: ApiError) => void, work: () => T): T => {
    try {
      return work()
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) refused(error)
      throw error
    }
  }
  /** Deploys the app of a deploy hook, and writes that or the refusal into the log of deliveries. */
  const deployBy = (hook: WebhookRow, app_id: string, content: string): InboundResult => {
    const refused = ({ status, message }: ApiError) =>
      void record(hook, {
        event: DEPLOY,
        content,
        status: 'failed',
        response_status: status,
        detail: message,
      })
    const commit = JSON.parse(content) as { branch?: string; commit?: string }
    return telling(refused, () =>
      db.tx(() => {
        const deployment_ids = [ports.deploy(app_id, 'hook', commit)]
        const told = { event: DEPLOY, content, deployment_ids: JSON.stringify(deployment_ids) }
        return { delivery_id: record(hook, told), outcome: 'deployed', reason: null, deployment_ids }
      }),
    )
  }

  /** Apps that a hook may be about: `own` is the one that it is for, unless that is being deleted. */
  const candidatesOf = (hook: WebhookRow) => {
    if (hook.app_id === null) return { own: undefined, candidates: ports.apps(hook.project_id) }
    const own = ports.app(hook.app_id)
    return { own, candidates: own ? [own] : [] }
  }
  /** Apps of the hook that are built from the repository of a push; `own` is the one that the hook is for. */
  const appsOf = (hook: WebhookRow, event: PushEvent) => {
    const { own, candidates } = candidatesOf(hook)
    const apps = candidates.filter(
      ({ git_url }) => git_url !== null && isSameRepository(git_url, event.repository),
    )
    return { own, apps }
  }
  /** Apps of which a push touches nothing that they watch; others are served while it is compared. */
  const untouchedBy = async (hook: WebhookRow, event: ForgeEvent): Promise<ReadonlySet<string>> => {
    if (event.kind !== 'push') return UNTOUCHED
    const untouched = new Set<string>()
    const pace = createPace(hook.project_id)
    for (const { id, watch_paths } of appsOf(hook, event).apps) {
      if (touchesNothing(event, watch_paths)) untouched.add(id)
      const rest = pace.rest()
      if (rest) await rest
    }
    return untouched
  }

  /** Does a part of what an event asks for; what a rule forbids keeps nothing else of it from being done. */
  const attempt = <T>(work: () => T, refuse: (reason: string) => T): T => {
    try {
      return db.part<T>(work as () => never)
    } catch (error) {
      if (!(error instanceof ApiError) || error.status >= 500) throw error
      return refuse(error.message)
    }
  }

  /** Deploys every app of the hook that the push is about; or says why none is. */
  const push = (
    hook: WebhookRow,
    event: PushEvent,
    untouched: ReadonlySet<string>,
  ): { deployed: string[]; reason: string | null } => {
    const { own, apps } = appsOf(hook, event)
    if (apps.length === 0)
      return {
        deployed: [],
        reason: own
          ? `The push is about another repository than that of ${own.name}.`
          : 'No app of the project is built from this repository.',
      }
    const reasons: string[] = []
    const deployed: string[] = []
    for (const app of apps) {
      const refuse = (refusal: string) => reasons.push(own ? refusal : `${app.name}: ${refusal}`)
      for (const { ref, name, sha, message } of movesOf(event))
        if (ref === 'branch' && sha !== null && !hasSkipMarker(message))
          attempt(() => deployed.push(...ports.previews.pushed(app.id, name, sha)), refuse)
      const found = deployedBy(event, app, untouched.has(app.id))
      if (typeof found === 'string') refuse(found)
      else {
        const commit = { branch: found.name, commit: found.sha ?? undefined }
        attempt(() => deployed.push(ports.deploy(app.id, 'push', commit)), refuse)
      }
    }
    return { deployed, reason: reasons.length > 0 ? reasons.join(' ') : null }
  }

  /**
   * Does what an event asks for and writes it into the log of deliveries, both or neither. What a
   * rule forbids is ignored with its reason, because forges turn off hooks that fail.
   */
  const act = (
    hook: WebhookRow,
    event: ForgeEvent,
    { name, key, untouched }: { name: string; key: string | null; untouched: ReadonlySet<string> },
  ): InboundResult =>
    db.tx(() => {
      const log = (row: Partial<DeliveryRow>) =>
        record(hook, { event: name, content: keptContent(event), repeat_key: key, ...row })
      const ignored = (reason: string): InboundResult => ({
        delivery_id: log({ status: 'ignored', detail: reason }),
        outcome: 'ignored',
        reason,
        deployment_ids: [],
      })
      if (event.kind === 'ping')
        return { delivery_id: log({}), outcome: 'pong', reason: null, deployment_ids: [] }
      if (hook.enabled === 0) return ignored('The webhook is turned off.')
      if (event.kind === 'other') return ignored(event.reason)
      if (event.kind === 'pull_request') {
        const { candidates } = candidatesOf(hook)
        const shown = showPullRequest({ candidates, previews: ports.previews, attempt }, event)
        const { is_done, reason, deployment_ids } = shown
        if (!is_done) return ignored(reason ?? 'Nothing to show.')
        const detail = { deployment_ids: JSON.stringify(deployment_ids), detail: reason }
        return { delivery_id: log(detail), outcome: 'preview', reason, deployment_ids }
      }
      const { deployed, reason } = push(hook, event, untouched)
      if (deployed.length === 0) return ignored(reason ?? 'Nothing to deploy.')
      return {
        delivery_id: log({ deployment_ids: JSON.stringify(deployed), detail: reason }),
        outcome: 'deployed',
        reason,
        deployment_ids: deployed,
      }
    })

  const secretOf = (hook: WebhookRow): string =>
    hook.secret ? secrets.open(hook.secret, secretContext(hook.id)) : ''
  /**
   * Refuses a call, and tells those who may see the log of it: without, whoever mistyped the secret
   * would find nothing there. Anybody may have sent it, so nothing of it is kept, and all of them
   * in a row are one entry.
   */
  const unsigned = (hook: WebhookRow): ApiError => {
    const refusal = new ApiError('UNAUTHORIZED', UNSIGNED)
    noteRefusal(hook, refusal, `${UNSIGNED} ${SAME_SECRET}`)
    return refusal
  }
  const since = () => new Date(clock.now() - REPEAT_MS).toISOString()
  const refuseRepeat = (hook: WebhookRow, key: string | null): void => {
    if (key && deliveries.isKnown(hook.id, key, since()))
      throw new ApiError('CONFLICT', 'This delivery was received before; nothing was done again.')
  }
  /** Takes a body as it came. Others are served while it is, so that the hook may be another one at the end. */
  const takeEvent = async (token: string, body: Buffer, header: ReadHeader): Promise<InboundResult> => {
    const asked = knownHook(token, 'git')
    const { project_id } = asked
    const secret = secretOf(asked)
    const forge = findForge(asked.provider ?? '')
    if (!forge?.verify(await hmacOf(body, secret, createPace(project_id)), header, secret))
      throw unsigned(asked)
    const key = forge.delivery(header)?.slice(0, 200) ?? null
    refuseRepeat(asked, key)
    const name = forge.event(header).slice(0, 100)
    const content_type = header('content-type') ?? ''
    const event = await read(project_id, { forge: forge.name, name, content_type, body })
    const untouched = await untouchedBy(asked, event)
    const hook = knownHook(token, 'git')
    if (hook.provider !== asked.provider || secretOf(hook) !== secret) throw unsigned(hook)
    refuseRepeat(hook, key)
    if (key) deliveries.forgetKey(hook.id, key, since())
    return act(hook, event, { name: name || 'unnamed', key, untouched })
  }

  return {
    /**
     * Takes an event of a forge. Unknown addresses are 404 before a byte is read, a wrong signature
     * 401, a repeated delivery 409.
     */
    receive(token: string, stream: Readable, header: ReadHeader): Promise<InboundResult> {
      const { id, project_id } = knownHook(token, 'git')
      limit(id)
      return bodies.take(project_id, stream, (body) => takeEvent(token, body, header))
    },
    /** Starts a deployment for whoever knows the secret address. What is sent along is passed over. */
    async deploy(
      token: string,
      stream: Readable,
      commit: { branch?: string; commit?: string },
    ): Promise<InboundResult> {
      const asked = knownHook(token, 'deployment')
      // Whoever knows the address is meant to: how often it is called is for those who see the log.
      telling(
        (refusal) => noteRefusal(asked, refusal, refusal.message),
        () => limit(asked.id),
      )
      await finished(stream.resume())
      const hook = knownHook(token, 'deployment')
      const content = JSON.stringify(commit)
      const app = hook.app_id ? ports.app(hook.app_id) : undefined
      if (hook.enabled === 1 && app) return deployBy(hook, app.id, content)
      const reason = 'The webhook is turned off.'
      const delivery_id = db.tx(() =>
        record(hook, { event: DEPLOY, content, status: 'ignored', detail: reason }),
      )
      return { delivery_id, outcome: 'ignored', reason, deployment_ids: [] }
    },
    /** What `again` needs to know of a stored delivery, with others served while it is found out. */
    weigh: (hook: WebhookRow, row: DeliveryRow) =>
      row.event === DEPLOY ? UNTOUCHED : untouchedBy(hook, checked(JSON.parse(row.content) as ForgeEvent)),
    /** Does again what a stored delivery asked for. */
    again(hook: WebhookRow, row: DeliveryRow, untouched: ReadonlySet<string>): InboundResult {
      const { event: name, content } = row
      if (name === DEPLOY && hook.kind === 'deployment') return deployBy(hook, hook.app_id!, content)
      return act(hook, checked(JSON.parse(content) as ForgeEvent), { name, key: null, untouched })
    },
  }
}
export type Inbound = ReturnType<typeof createInbound>
