import type { Readable } from 'node:stream'
import type { Access, Actor, Credentials } from '#server/kernel/access'
import type { HeldBytes } from '#server/kernel/held-bytes'
import type { Log } from '#server/kernel/log'
import type { Changes } from './changes.ts'
import type { Entrance, RequestTurns } from './turns.ts'

/** Facts about a request that domains may need; no type of the HTTP library. */
export interface RequestFacts {
  /** `req_…`, also in the `X-Request-Id` response header. */
  id: string
  method: string
  path: string
  /** Address of the peer, or what a trusted proxy says it is. */
  address: string
  user_agent: string
  /** Whether the client speaks HTTPS to us or to a trusted proxy in front. */
  secure: boolean
  /** Name under which the installation's own edge served it, over HTTPS; absent for requests to the plain port. */
  edge_name?: string
}

/** Stored answers of requests with an `Idempotency-Key`. */
export interface StoredAnswer {
  status: number
  body: string
}
export interface Idempotency {
  /**
   * The earlier answer, or undefined when the caller is the first and must `finish` or `abandon`. Throws 409
   * for another body, while the first is still at work, or when its answer was not kept.
   */
  begin(scope: string, key: string, body_hash: string): StoredAnswer | undefined
  /** Without a body the answer is not kept: it holds what is shown only once. */
  finish(scope: string, key: string, answer: { status: number; body: string | undefined }): void
  abandon(scope: string, key: string): void
}

/** What the HTTP layer needs from the composed services; `services.ts` fills it in. */
export interface HttpPorts {
  http: {
    log: Log
    /**
     * Who the credentials belong to. Throws UNAUTHORIZED, CSRF_INVALID, or PASSWORD_CHANGE_REQUIRED unless
     * `allow_stale_password`.
     */
    authenticate(
      credentials: Credentials,
      facts: RequestFacts,
      options: { allow_stale_password: boolean },
    ): Promise<Actor> | Actor
    /**
     * Begins to watch: the answer tells later whether everybody surely is who they were, with the same rights, since
     * nothing at all was written meanwhile and next to no time has passed.
     */
    watch(): () => boolean
    /** The caller as they are now. Throws UNAUTHORIZED when their session, key or account has ended. */
    refresh(actor: Actor): Actor
    /** Hears whose proofs or rights have changed; returns the unsubscribe function. */
    onRevocation(listener: (user_id: string) => void): () => void
    /**
     * Project of a resource; undefined when there is none. Nouns are those that endpoints name in `scope`.
     */
    locate(noun: string, id: string): string | undefined
    /** Origins whose pages may read answers. */
    cors_origins(): readonly string[]
    /** Project that a resource is created in when the body names none. */
    default_project(): string
    idempotency: Idempotency
    /** What bodies hold until they are answered, by user. */
    bodies: HeldBytes
    /** What answers hold until they were taken, by user. */
    answers: HeldBytes
    /** Lets requests in, before anybody knows whose they are. */
    enter: Entrance
    /** Turns at beginning to work on a request, by user. */
    turn: RequestTurns
    /** What a change waits for while another program holds the database; undefined while none does. */
    unlocked(): Promise<void> | undefined
    /** How fast one user may change things. */
    changes: Changes
    /** Hears of refused requests (401, 403, 429), for the audit trail. */
    refused(facts: RequestFacts, code: string, actor: Actor | undefined, access: Access): void
    /** Address and scheme of the client: forwarding headers count only when the peer is a trusted proxy. */
    client(
      peer: string,
      headers: {
        forwarded_for?: string
        forwarded_proto?: string
        real_ip?: string
        edge_proof?: string
      },
    ): { address: string; secure: boolean; by_edge?: true }
    /** Hears of requests that came through the installation's own edge, once it is known who sent them. */
    cameByEdge(hostname: string, actor: Actor): void
  }
}

/** What a response may set besides its body. */
export interface ResponseControls {
  /** Another success than the endpoint's usual one: 206 for a part of a download. */
  status(code: 206): void
  header(name: string, value: string): void
  cookie(
    name: string,
    value: string,
    options: {
      max_age_s: number
      http_only: boolean
      secure: boolean
      same_site: 'lax' | 'strict'
      path: string
    },
  ): void
}

/** The request's body as a stream, for endpoints with `upload`. */
export interface UploadStream {
  stream: Readable
  content_length?: number
}
