import type { EventHandler } from 'h3'
import type * as v from 'valibot'
import type { Access, Actor } from '#server/kernel/access'
import type { ErrorCode } from '#server/kernel/errors'
import type { RequestFacts, ResponseControls, UploadStream } from './context.ts'

/**
 * Where the project of a request comes from: a resource named in the path (`{ noun: 'app' }` reads `id`) or
 * in the body (`{ noun: 'app', field: 'app_id' }`), the body's `project_id`, or nothing, for endpoints of the
 * installation and lists that filter by what the caller may see.
 */
export type Scope =
  | { noun: string; param?: string; field?: undefined }
  | {
      noun: string
      field: string
      param?: undefined /** Absent, the body's `project_id` counts. */
      or_project?: true
    }
  | 'body'
  | 'installation'

/** Whether only the body tells which project a request is about. */
export const isToldByBody = (scope: Scope | undefined): boolean =>
  scope === 'body' || (typeof scope === 'object' && scope.field !== undefined)

export type Schema = v.GenericSchema
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
  /** A header of the request by its name in lower case; for hooks, whose proof is in headers. */
  header(name: string): string | undefined
  /** The body as a stream that ends with a 413 at the limit; only for endpoints with `upload`. */
  upload: UploadStream
}

export interface EndpointDefinition<
  S,
  P extends Schema | undefined,
  Q extends Schema | undefined,
  B extends Schema | undefined,
  R extends Schema | undefined,
> {
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
  /**
   * Accepts a body of these media types as a stream of at most `max_bytes` instead of JSON. With `any_type`
   * another type, or none, is no error: senders of hooks choose their own. Beside a `body`, JSON is taken as
   * well, and the handler gets one of the two.
   */
  upload?: { media_types: readonly string[]; max_bytes: number; any_type?: true }
  status?: 200 | 201 | 202
  /** Schema of the whole response body: what it does not list does not leave the server. */
  response?: R
  /** An answer that is not JSON: its media types. The handler returns a text or bytes. */
  media_types?: readonly string[]
  /** Codes beyond those that every endpoint of this kind can answer. */
  errors?: readonly ErrorCode[]
  /** Reachable although the generated first password has not been changed. */
  allow_stale_password?: boolean
  handler(
    context: HandlerContext<S, Out<P>, Out<Q>, Out<B>>,
  ): Promise<R extends Schema ? v.InferInput<R> : unknown> | (R extends Schema ? v.InferInput<R> : unknown)
}

/** A definition with its types forgotten, as documentation and tests read it. */
export type AnyEndpoint = EndpointDefinition<any, any, any, any, any>
/** A route: what Nitro serves, carrying what it is. */
export type EndpointHandler = EventHandler & { definition: AnyEndpoint }
