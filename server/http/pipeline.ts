import { own } from '#server/kernel/own'
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { getRequestHeader, getRouterParams, type H3Event, setResponseHeader, setResponseStatus } from 'h3'
import * as v from 'valibot'
import { type Actor, authorize, projectRole } from '#server/kernel/access'
import { CALLS } from '#server/kernel/calls'
import { ApiError, invalid, notFound } from '#server/kernel/errors'
import { whileStanding } from '#server/kernel/standing'
import type { HttpPorts, RequestFacts, UploadStream } from './context.ts'
import { type AnyEndpoint, type HandlerContext, isToldByBody } from './definition.ts'
import { closeWhenUnread } from './entrance.ts'
import { toErrorAnswer } from './errors.ts'
import { decodeSegment, limitStream, readQuery, searchOf } from './input.ts'
import { credentialsOf, factsOf, mutates } from './request.ts'
import { shownAnswer } from './long-lists.ts'
import { controlsOf, reply } from './reply.ts'
import { bodyOf, sendsFile } from './request-body.ts'
import { holdsSecret } from './secret-answers.ts'
import { sendFile } from './send-file.ts'
import { whileAllowed } from './standing.ts'
import { answerShare, bodyShare } from './untaken.ts'
import { parseBody, parseQuery } from './validation.ts'

/** The caller of `public` endpoints: may do nothing. */
const NOBODY: Actor = {
  user_id: '',
  email: '',
  name: '',
  role: 'viewer',
  method: 'system',
  credential_id: '',
  projects: new Map(),
  scope: 'full',
  address: '',
  request_id: '',
}
/** One request on its way through an endpoint. */
interface Call {
  definition: AnyEndpoint
  event: H3Event
  services: HttpPorts
  facts: RequestFacts
  actor: Actor
  params: Record<string, string>
}

/**
 * Serves one request: 401, then 404 or 403, then 400, then 422, then the work itself; every error becomes the
 * envelope.
 */
export function serve(definition: AnyEndpoint, event: H3Event): Promise<unknown> {
  // The pattern: addresses of hooks are secrets.
  const pattern = event.context.matchedRoute?.path ?? definition.summary
  return CALLS.run(`${event.node.req.method ?? 'GET'} ${pattern}`, () => respond(definition, event))
}

const whoCalls = (
  definition: AnyEndpoint,
  event: H3Event,
  services: HttpPorts,
  facts: RequestFacts,
): Promise<Actor> | Actor =>
  services.http.authenticate(credentialsOf(event, facts), facts, {
    allow_stale_password: definition.allow_stale_password ?? false,
  })

const writes = ({ effect }: AnyEndpoint, { method }: RequestFacts): boolean =>
  mutates(method) || effect === 'write'

/** Whether a call adds something that is kept: what is revealed is told in the trail. What is deleted was added before. */
const isCounted = (definition: AnyEndpoint, facts: RequestFacts): boolean =>
  definition.access !== 'public' && facts.method !== 'DELETE' && writes(definition, facts)

async function respond(definition: AnyEndpoint, event: H3Event): Promise<unknown> {
  const services = event.context.services as HttpPorts
  const facts = factsOf(event, services)
  let actor: Actor | undefined
  try {
    await services.http.enter(facts.address)
    const isSame = services.http.watch()
    actor = definition.access === 'public' ? NOBODY : await whoCalls(definition, event, services, facts)
    const waiting = services.http.turn(actor.user_id || facts.address, definition.access === 'self')
    await waiting
    const locked = writes(definition, facts) ? services.http.unlocked() : undefined
    await locked
    // The caller as they are when their turn has come: the same, unless anything was written meanwhile.
    if ((waiting || locked) && actor !== NOBODY && !isSame())
      actor = await whoCalls(definition, event, services, facts)
    if (isCounted(definition, facts)) services.http.changes.take(actor, definition.access === 'self')
    const share = answerShare(event.node, services.http.answers, actor.user_id)
    // Whoever takes no answers can still end a session or key, which another may have got hold of.
    if (definition.access !== 'public' && definition.access !== 'self') share.requireRoom()
    if (facts.edge_name !== undefined) services.http.cameByEdge(facts.edge_name, actor)
    const params = Object.fromEntries(
      Object.entries(getRouterParams(event)).map(([key, value]) => [key, decodeSegment(value)]),
    )
    const result = await answer({ definition, event, services, facts, actor, params })
    if (result instanceof Readable) return await sendFile(event, result, share, services.http.log)
    return await reply(event, definition, result, share)
  } catch (error) {
    const mapped = toErrorAnswer(error, facts.id, services.http.log)
    if (mapped.status === 401 || mapped.status === 403 || mapped.status === 429)
      services.http.refused(
        facts,
        mapped.body.error.code,
        actor === NOBODY ? undefined : actor,
        definition.access,
      )
    closeWhenUnread(event)
    for (const [name, value] of Object.entries(mapped.headers)) setResponseHeader(event, name, value)
    setResponseStatus(event, mapped.status)
    setResponseHeader(event, 'Content-Type', 'application/json')
    return mapped.body
  }
}

/**
 * Authorises before anything of the body is judged, so that a caller without the right learns nothing about
 * its rules.
 */
async function answer(began: Call): Promise<unknown> {
  const { definition, event, services, facts } = began
  const by_body = isToldByBody(definition.scope)
  authorizeFor(began, by_body ? undefined : projectOf(began, undefined))
  const raw_body = await bodyOf(definition, event, bodyShare(event.node, services.http.bodies, began.actor))
  const call = raw_body?.bytes.length ? await askedAnew(began) : began
  const { actor } = call
  // Where it is now: it may have been moved while the body came.
  const project_id = projectOf(call, by_body ? raw_body?.value : undefined)
  // Without a project the schema says which field is missing.
  if (!by_body || project_id !== undefined)
    authorizeFor(call, project_id, by_body ? raw_body?.value : undefined)
  const params = definition.params ? parseQuery(definition.params, call.params) : undefined
  const query = parseQuery(
    definition.query ?? v.strictObject({}),
    readQuery(searchOf(event), definition.query),
  )
  const is_upload = sendsFile(definition, event)
  const body = definition.body && !is_upload ? parseBody(definition.body, raw_body?.value) : undefined
  if (by_body) requireOneProject(definition, project_id, body)
  const run = async () => {
    const context = {
      params,
      query,
      body,
      actor,
      project_id: project_id ?? '',
      services,
      facts,
      response: controlsOf(event),
      header: (name: string) => getRequestHeader(event, name),
      upload: uploadOf(call, project_id),
    } as HandlerContext<unknown, any, any, any>
    const result: unknown = await whileItsRight(call, { project_id, body: raw_body?.value }, () =>
      definition.handler(context),
    )
    // An export is a stream in another of the declared media types, written line by line from its own
    // allow-list.
    if (definition.media_types && result instanceof Readable) return whileRight(call, project_id, result)
    if (!definition.response) return result
    // What belongs to the caller, such as a ticket, is narrowed itself.
    const is_narrowed = actor.scope !== 'full' && definition.access !== 'self'
    return shownAnswer(definition.response, result, { is_narrowed, owner: actor.user_id })
  }
  const key =
    facts.method === 'POST' && !is_upload && definition.access !== 'public'
      ? event.node.req.headers['idempotency-key']
      : undefined
  if (typeof key === 'string') return idempotent(call, key, raw_body?.bytes ?? Buffer.alloc(0), run)
  // Before the work, so that a handler may answer with another success.
  setResponseStatus(event, definition.status ?? 200)
  const result = await run()
  if (definition.media_types && !event.node.res.hasHeader('content-type'))
    setResponseHeader(event, 'Content-Type', definition.media_types[0]!)
  return result
}

/**
 * The same call by its caller as they are now. A body may take half a minute to come, and a file an hour: their
 * session or key may have ended meanwhile, or their role be another.
 */
async function askedAnew(call: Call): Promise<Call> {
  const { definition, event, services, facts } = call
  if (definition.access === 'public') return call
  return { ...call, actor: await whoCalls(definition, event, services, facts) }
}

/** Throws when a caller may not do this any more, there or where the resource is now. */
function requireStill(call: Call, project_id: string | undefined): void {
  authorizeFor(call, isToldByBody(call.definition.scope) ? project_id : projectOf(call, undefined))
}

/**
 * Does the work of a call, which may wait for hosts of users and for the engine, and writes only what its caller
 * still may, where the resource then is. Who changes their own account ends their own right by it.
 */
function whileItsRight(
  call: Call,
  { project_id, body }: { project_id: string | undefined; body: unknown },
  work: () => Promise<unknown> | unknown,
): Promise<unknown> {
  const { access } = call.definition
  if (access === 'public' || access === 'self') return Promise.resolve(work())
  return whileStanding(() => {
    const { http } = call.services
    const now = { ...call, actor: http.refresh(call.actor) }
    const place = projectNow(now, body) ?? project_id
    // With the project all that could be written to is gone.
    if (place === undefined || http.locate('project', place)) authorizeFor(now, place, body)
  }, work)
}

/** The project that a call is about, as things are now; undefined for what is gone. */
function projectNow(call: Call, body: unknown): string | undefined {
  try {
    return projectOf(call, body)
  } catch {
    return undefined
  }
}

/** A file in transit, which ends with the right of its caller. */
const whileRight = <S extends Readable>(call: Call, project_id: string | undefined, file: S): S =>
  call.definition.access === 'public'
    ? file
    : whileAllowed(file, call.services.http, call.actor, (actor) =>
        requireStill({ ...call, actor }, project_id),
      )

/** What a refusal calls what is not there: what the request named, so that unknown ids read the same. */
function nounOf({ scope }: AnyEndpoint, body: unknown): string {
  if (typeof scope !== 'object') return 'project'
  if (scope.field === undefined || !scope.or_project) return scope.noun
  return own(body as Record<string, unknown>, scope.field) === undefined ? 'project' : scope.noun
}

/**
 * For a project that only the body names, the first call knows no project yet and refuses who could not do
 * this in any.
 */
function authorizeFor(call: Call, project_id: string | undefined, body?: unknown): void {
  const { definition, facts, actor } = call
  if (definition.access === 'public') return
  const noun = nounOf(definition, body)
  authorize(
    actor,
    definition.access,
    project_id ? { project_id, noun } : undefined,
    definition.effect ?? (mutates(facts.method) ? 'write' : 'read'),
  )
}

function projectOf(call: Call, body: unknown): string | undefined {
  const { scope } = call.definition
  const { http } = call.services
  if (typeof scope === 'object' && scope.field !== undefined) {
    const named = own(body as Record<string, unknown> | null | undefined, scope.field)
    if (named === undefined && scope.or_project) return namedProject(call, body)
    if (typeof named !== 'string') return undefined
    const project_id = http.locate(scope.noun, named)
    if (!project_id) throw notFound(scope.noun)
    return project_id
  }
  if (typeof scope === 'object') {
    const project_id = http.locate(scope.noun, own(call.params, scope.param ?? 'id') ?? '')
    if (!project_id) throw notFound(scope.noun)
    return project_id
  }
  return scope === 'body' ? namedProject(call, body) : undefined
}

/** What decides the project is in one only: another that is named beside it would silently be passed over. */
function requireOneProject({ scope }: AnyEndpoint, project_id: string | undefined, body: unknown): void {
  if (typeof scope !== 'object') return
  const named = own(body as Record<string, unknown> | null | undefined, 'project_id')
  if (named !== undefined && named !== project_id)
    throw invalid('project_id', `is another project than that of the ${scope.noun}. Leave it out.`)
}

/** The project that the body names, else the default one. */
function namedProject(call: Call, body: unknown): string | undefined {
  const { http } = call.services
  const named = (body as { project_id?: unknown } | null | undefined)?.project_id
  if (typeof named !== 'string') return defaultProject(call)
  const project_id = http.locate('project', named)
  if (!project_id) throw notFound('project')
  return project_id
}

/**
 * The project of a request that names none. Throws 422 where the caller has no part in it, since it is not
 * what they asked for.
 */
function defaultProject({ services, actor }: Call): string {
  const project_id = services.http.default_project()
  if (!projectRole(actor, project_id))
    throw invalid(
      'project_id',
      'is required: name one of your projects, or make one with POST /api/projects.',
    )
  return project_id
}

async function idempotent(
  call: Call,
  key: string,
  bytes: Buffer,
  run: () => Promise<unknown>,
): Promise<unknown> {
  if (!/^[\x21-\x7e]{1,255}$/.test(key))
    throw new ApiError('BAD_REQUEST', 'Idempotency-Key must have 1 to 255 printable characters.')
  const { event, facts, actor, definition } = call
  const { idempotency } = call.services.http
  // Another session or key of the same user may have other rights: it is another caller.
  const scope = `${actor.user_id} ${actor.credential_id} ${facts.method} ${facts.path}`
  const hash = createHash('sha256').update(searchOf(event)).update('\n').update(bytes).digest('hex')
  const stored = idempotency.begin(scope, key, hash)
  if (stored) {
    setResponseHeader(event, 'Idempotency-Replayed', 'true')
    setResponseStatus(event, stored.status)
    return JSON.parse(stored.body) as unknown
  }
  const status = definition.status ?? 200
  try {
    const result = await run()
    const is_kept = !holdsSecret(definition.response, result)
    idempotency.finish(scope, key, { status, body: is_kept ? JSON.stringify(result) : undefined })
    setResponseStatus(event, status)
    return result
  } catch (error) {
    idempotency.abandon(scope, key)
    throw error
  }
}

/** The file of an upload. It ends well only if its sender may still do this at its end. */
function uploadOf(call: Call, project_id: string | undefined): UploadStream | undefined {
  const { definition, event } = call
  if (!definition.upload || !sendsFile(definition, event)) return undefined
  const atEnd = async () => requireStill(await askedAnew(call), project_id)
  const limited = limitStream(event.node.req, definition.upload.max_bytes, { atEnd })
  return {
    stream: whileRight(call, project_id, limited),
    content_length: Number(event.node.req.headers['content-length']) || undefined,
  }
}
