import { createHash } from 'node:crypto'
import { defineEventHandler, getRequestURL, getRouterParams, setResponseHeader, setResponseStatus, setCookie, type EventHandler, type H3Event } from 'h3'
import * as v from 'valibot'
import { type Access, type Actor, authorize } from '#server/kernel/access'
import { ApiError, type ErrorCode, notFound } from '#server/kernel/errors'
import type { HttpPorts, RequestFacts, ResponseControls, UploadStream } from './context.ts'
import { toErrorAnswer } from './errors.ts'
import { decodeSegment, isMediaType, MAX_BODY_BYTES, parseJson, readBytes, readQuery } from './input.ts'
import { credentialsOf, factsOf } from './request.ts'
import { parseBody, parseQuery } from './validation.ts'

/**
 * Where the project of a request comes from: a resource named in the path (`{ noun: 'app' }` reads `id`), the body's
 * `project_id`, or nothing, for endpoints of the installation and lists that filter by what the caller may see.
 */
export type Scope = { noun: string; param?: string } | 'body' | 'installation'

type Schema = v.GenericSchema
type Out<S> = S extends Schema ? v.InferOutput<S> : undefined

export interface HandlerContext<S, P, Q, B> {
  params: P
  query: Q
  body: B
  /** The authenticated caller; for `public` endpoints a placeholder that may do nothing. */
  actor: Actor
  /** Project that the request is about; empty for endpoints of the installation. */
  project_id: string
  services: S
  facts: RequestFacts
  response: ResponseControls
  /** Only for endpoints with `upload`. */
  upload: UploadStream
}

export interface EndpointDefinition<S, P extends Schema | undefined, Q extends Schema | undefined, B extends Schema | undefined, R extends Schema | undefined> {
  /** One line; the operation's name in the documentation. */
  summary: string
  /** What a caller needs to know beyond the summary. */
  description?: string
  /** Least right in the resource's project, or on the installation. */
  access: Access
  /** Default `installation`. */
  scope?: Scope
  /** What the call does, for narrowed API keys; default `read` for GET, else `write`. */
  effect?: 'read' | 'deploy' | 'write'
  params?: P
  query?: Q
  body?: B
  /** An example of a body, for the documentation and its tests. */
  example?: B extends Schema ? v.InferInput<B> : never
  /** Accepts a body of these media types as a stream of at most `max_bytes` instead of JSON. */
  upload?: { media_types: readonly string[]; max_bytes: number }
  status?: 200 | 201 | 202
  /** Schema of the whole response body: what it does not list does not leave the server. */
  response?: R
  /** An answer that is not JSON: its media types. The handler returns a text or bytes. */
  media_types?: readonly string[]
  /** Codes beyond those that every endpoint of this kind can answer. */
  errors?: readonly ErrorCode[]
  /** Reachable although the generated first password has not been changed. */
  allow_stale_password?: boolean
  handler(context: HandlerContext<S, Out<P>, Out<Q>, Out<B>>): Promise<R extends Schema ? v.InferInput<R> : unknown> | (R extends Schema ? v.InferInput<R> : unknown)
}

/** A definition with its types forgotten, as documentation and tests read it. */
export type AnyEndpoint = EndpointDefinition<any, any, any, any, any>
/** A route: what Nitro serves, carrying what it is. */
export type EndpointHandler = EventHandler & { definition: AnyEndpoint }

const NOBODY: Actor = { user_id: '', email: '', name: '', role: 'viewer', method: 'system', credential_id: '', projects: new Map(), scope: 'full', address: '', request_id: '' }
const mutates = (method: string) => !['GET', 'HEAD', 'OPTIONS'].includes(method)

/** Binds `endpoint()` to the type of the composed services. */
export function endpointsOf<S extends HttpPorts>() {
  return function endpoint<P extends Schema | undefined = undefined, Q extends Schema | undefined = undefined, B extends Schema | undefined = undefined, R extends Schema | undefined = undefined>(
    definition: EndpointDefinition<S, P, Q, B, R>,
  ): EndpointHandler {
    return Object.assign(defineEventHandler((event) => serve(definition as AnyEndpoint, event)), { definition: definition as AnyEndpoint })
  }
}

async function serve(definition: AnyEndpoint, event: H3Event): Promise<unknown> {
  const services = event.context.services as HttpPorts
  const facts = factsOf(event, services)
  let actor: Actor | undefined
  try {
    actor = await identify(definition, event, services, facts)
    return await answer(definition, event, services, facts, actor)
  } catch (error) {
    const mapped = toErrorAnswer(error, facts.id, services.http.log)
    if (mapped.status === 401 || mapped.status === 403 || mapped.status === 429) services.http.refused(facts, mapped.body.error.code, actor, definition.access)
    if (mapped.status === 413) setResponseHeader(event, 'Connection', 'close')
    for (const [name, value] of Object.entries(mapped.headers)) setResponseHeader(event, name, value)
    setResponseStatus(event, mapped.status)
    return mapped.body
  }
}

function identify(definition: AnyEndpoint, event: H3Event, services: HttpPorts, facts: RequestFacts): Promise<Actor> | Actor {
  if (definition.access === 'public') return NOBODY
  return services.http.authenticate(credentialsOf(event, mutates(facts.method)), facts, { allow_stale_password: definition.allow_stale_password ?? false })
}

/** Reads, authorises and validates in that order, so that a caller without the right learns nothing about the body's rules. */
async function answer(definition: AnyEndpoint, event: H3Event, services: HttpPorts, facts: RequestFacts, actor: Actor): Promise<unknown> {
  const url = getRequestURL(event)
  const raw_params = Object.fromEntries(Object.entries(getRouterParams(event)).map(([key, value]) => [key, decodeSegment(value)]))
  const raw_body = await bodyOf(definition, event)
  const project_id = projectOf(definition, raw_params, raw_body?.value, services)
  if (definition.access !== 'public') {
    const noun = typeof definition.scope === 'object' ? definition.scope.noun : 'project'
    const effect = definition.effect ?? (mutates(facts.method) ? 'write' : 'read')
    authorize(actor, definition.access, project_id ? { project_id, noun } : undefined, effect)
  }
  const params = definition.params ? parseQuery(definition.params, raw_params) : undefined
  const query = definition.query ? parseQuery(definition.query, readQuery(url.searchParams, definition.query)) : undefined
  const body = definition.body ? parseBody(definition.body, raw_body?.value) : undefined
  const run = async () => {
    const result = await definition.handler({
      params, query, body, actor, project_id: project_id ?? '', services, facts,
      response: controlsOf(event), upload: { stream: event.node.req, content_length: Number(event.node.req.headers['content-length']) || undefined },
    } as HandlerContext<unknown, any, any, any>)
    return definition.response ? v.parse(definition.response, result) : result
  }
  const key = facts.method === 'POST' && !definition.upload && definition.access !== 'public' ? event.node.req.headers['idempotency-key'] : undefined
  if (typeof key === 'string') return idempotent(services, event, facts, actor, key, raw_body?.bytes ?? Buffer.alloc(0), definition.status ?? 200, run)
  const result = await run()
  setResponseStatus(event, definition.status ?? 200)
  return result
}

async function bodyOf(definition: AnyEndpoint, event: H3Event): Promise<{ bytes: Buffer; value: unknown } | undefined> {
  const request = event.node.req
  if (definition.upload) {
    if (!isMediaType(request.headers['content-type'], definition.upload.media_types)) throw new ApiError('UNSUPPORTED_MEDIA_TYPE', `Send the body as ${definition.upload.media_types[0]}.`)
    if (Number(request.headers['content-length'] ?? 0) > definition.upload.max_bytes) throw new ApiError('PAYLOAD_TOO_LARGE', `The body is larger than ${definition.upload.max_bytes} bytes.`)
    return undefined
  }
  if (!mutates(request.method ?? 'GET')) return undefined
  const empty = !request.headers['transfer-encoding'] && Number(request.headers['content-length'] ?? 0) === 0
  if (empty) return { bytes: Buffer.alloc(0), value: definition.body ? {} : undefined }
  if (!isMediaType(request.headers['content-type'], ['application/json'])) throw new ApiError('UNSUPPORTED_MEDIA_TYPE', 'Send the body as application/json.')
  const bytes = await readBytes(request, MAX_BODY_BYTES)
  return { bytes, value: parseJson(bytes) }
}

function projectOf(definition: AnyEndpoint, params: Record<string, string>, body: unknown, services: HttpPorts): string | undefined {
  const { scope } = definition
  if (typeof scope === 'object') {
    const project_id = services.http.locate(scope.noun, params[scope.param ?? 'id'] ?? '')
    if (!project_id) throw notFound(scope.noun)
    return project_id
  }
  if (scope !== 'body') return undefined
  const named = (body as { project_id?: unknown } | undefined)?.project_id
  if (typeof named !== 'string') return services.http.default_project()
  const project_id = services.http.locate('project', named)
  if (!project_id) throw notFound('project')
  return project_id
}

async function idempotent(services: HttpPorts, event: H3Event, facts: RequestFacts, actor: Actor, key: string, bytes: Buffer, status: number, run: () => Promise<unknown>): Promise<unknown> {
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) throw new ApiError('BAD_REQUEST', 'Idempotency-Key must have 1 to 255 printable characters.')
  const { idempotency } = services.http
  const scope = `${actor.user_id} ${facts.method} ${facts.path}`
  const stored = idempotency.begin(scope, key, createHash('sha256').update(bytes).digest('hex'))
  if (stored) {
    setResponseHeader(event, 'Idempotency-Replayed', 'true')
    setResponseStatus(event, stored.status)
    return JSON.parse(stored.body) as unknown
  }
  try {
    const result = await run()
    idempotency.finish(scope, key, { status, body: JSON.stringify(result) })
    setResponseStatus(event, status)
    return result
  } catch (error) {
    idempotency.abandon(scope, key)
    throw error
  }
}

function controlsOf(event: H3Event): ResponseControls {
  return {
    header: (name, value) => setResponseHeader(event, name, value),
    cookie: (name, value, o) => setCookie(event, name, value, { maxAge: o.max_age_s, httpOnly: o.http_only, secure: o.secure, sameSite: o.same_site, path: o.path }),
  }
}
