/**
 * The edge: what answers on ports 80 and 443. The data plane outlives the control plane: it serves on while
 * Portreeve restarts, upgrades or is down, from the configuration on disk, which always equals what runs.
 */
export interface Ingress {
  /**
   * Makes sure that the edge runs with the last known configuration. Idempotent; called at boot and by the
   * reconciler.
   */
  ensure(signal?: AbortSignal): Promise<void>
  /**
   * Replaces the whole desired state: computes the difference and touches only what changed. Used at boot. A
   * route that the edge cannot take is left out and named by `status().refused`, so that one broken app never
   * takes the others down.
   */
  apply(state: IngressState): Promise<void>
  /** Sets one route (creates or replaces it); resolves once requests go to the new servers. */
  setRoute(route: Route): Promise<void>
  /** Removes one route; its host names answer 404 from then on. A missing one is fine. */
  removeRoute(route_id: string): Promise<void>
  /**
   * Sets a certificate (adds or replaces it) for the names it lists; connections that are open keep the one
   * they have.
   */
  setCertificate(certificate: Certificate): Promise<void>
  /** Removes a certificate; its names get the edge's own self-signed one. A missing one is fine. */
  removeCertificate(certificate_id: string): Promise<void>
  /**
   * Answers an ACME HTTP-01 challenge by itself, for any name, whether or not an app is behind it, until it
   * is removed.
   */
  setChallenge(challenge: Challenge): Promise<void>
  removeChallenge(challenge: Pick<Challenge, 'hostname' | 'token'>): Promise<void>
  /**
   * Requests and connections that servers no longer in any route still hold: 0 means that they may be
   * stopped.
   */
  activeConnections(address: string, port: number): Promise<number>
  /** What the edge counted per route since it started. */
  traffic(): Promise<RouteTraffic[]>
  /**
   * Tells every request that the edge has answered for an app, until the signal aborts. It never holds up a
   * request, and a listener that was away hears what came meanwhile.
   */
  followRequests(options: RequestFollowing): void
  /**
   * Hears of apps that somebody asks for while they sleep, until the signal aborts. The edge holds the request;
   * it lets it go as soon as the route has servers, and answers 503 after `WAKE_LIMIT_MS`, or once nobody
   * listens. An app is told again each second for as long as a request waits.
   */
  followWakes(options: WakeFollowing): void
  status(): Promise<IngressStatus>
  close(): Promise<void>
}
/** So long the edge holds a request for an app that sleeps. */
export const WAKE_LIMIT_MS = 30_000
export interface WakeFollowing {
  signal: AbortSignal
  /** `held`: the app is about to have servers; `refused`: nobody need wait for it. Answers at once. */
  onWake(app_id: string): 'held' | 'refused'
}
export interface IngressState {
  routes: Route[]
  /** Absent: the certificates stay as they are. */
  certificates?: Certificate[]
}
/**
 * What one domain answers: its names and path, the rules that hold there, and the instances behind it. An app
 * has one for each of its domains.
 */
export interface Route {
  /** Stable: the domain's id. */
  id: string
  /** The app behind it, for its access log; absent for the platform's own routes. */
  app_id?: string
  /**
   * Lower-case ASCII host names, without port. `*.example.com` stands for every name one label below
   * example.com that no route names itself.
   */
  hostnames: string[]
  /**
   * Serves only paths at or below this one, e.g. `/api`; `/` when absent. Letters, digits and `._~@:+,=-`
   * only. Of several routes with one name the longest path wins, at whole segments only.
   */
  path?: string
  /** Takes `path` off before the app sees the request. */
  strip_path?: boolean
  /**
   * Names that are not served but sent, with 308, to the same path at another name: `www.example.com` to
   * `example.com`.
   */
  aliases?: Record<string, string>
  /** Rules that answer instead of the app, tried in this order; the first that matches wins. */
  redirects?: RouteRedirect[]
  /** Empty: the route answers 503 with a plain page that says the app is not running. */
  servers: RouteServer[]
  /** While there are no servers a request is held and the app is told to wake; see `followWakes`. */
  asleep?: boolean
  /** Sends plain HTTP requests to HTTPS with 308. */
  force_https?: boolean
  /**
   * Answers every request with 503 and a page that says the app is being worked on, or with the route's own
   * page for 503.
   */
  maintenance?: boolean
  /** Addresses and networks that may ask; everybody else gets 403. */
  allowed_addresses?: string[]
  /** Name and password that a client must send, made by `createBasicAuth`. The app does not see them. */
  basic_auth?: BasicAuth
  /** A larger body gets 413, one of unstated size 411. */
  body_limit_bytes?: number
  /** How long the app may be silent before the client gets 504. */
  request_timeout_ms?: number
  /** Set on every answer of the app. `Strict-Transport-Security` is sent over HTTPS only. */
  response_headers?: Record<string, string>
  /**
   * A secret that the edge sends along as `X-Portreeve-Edge`: what is behind can tell the edge from everybody
   * else on this machine. Requests of other routes never have that header.
   */
  proof?: string
  /**
   * Pages to send instead of the edge's own, HTML of at most 15,000 bytes by status: 403, 404 (only the
   * edge's), 502, 503, 504. A line break is sent as a space.
   */
  error_pages?: Record<string, string>
}
/**
 * One redirect rule of a route; the path it compares is the request's, before `strip_path`, without the
 * query.
 */
export interface RouteRedirect {
  id: string
  kind: 'exact' | 'prefix' | 'regex'
  /**
   * A path; a prefix matches at whole segments. Or a regular expression over the whole path without
   * back-references, named groups or options. `matchRedirect` says what the edge does.
   */
  from: string
  /**
   * Address with a fixed host, or path; `$1` to `$9` stand for what the groups of `from` matched, for a
   * prefix `$1` is the rest behind it.
   */
  to: string
  status: 301 | 302 | 307 | 308
  /** Whether the query of the request is put behind the target. */
  keep_query: boolean
}
/** What the edge compares a client's credentials with; the password cannot be read from it. */
export interface BasicAuth {
  salt: string
  digest: string
}
export interface Certificate {
  /** Stable; a renewed certificate keeps it. */
  id: string
  /** Lower-case names that it is shown for; `*.example.com` for one label. */
  names: string[]
  /** The chain, leaf first, then the private key, each block as PEM with a line break at its end. */
  pem: string
}
export interface Challenge {
  hostname: string
  token: string
  key_authorization: string
}
/** Where an instance listens: an IP address, never a name, and a TCP port. */
export interface RouteServer {
  address: string
  port: number
}
export interface RouteTraffic {
  route_id: string
  requests: number
  errors_5xx: number
  bytes_in: number
  bytes_out: number
  sessions: number
}
export interface RequestFollowing {
  /** What came with the last requests that were heard; absent: everything that the edge still knows. */
  cursor?: string
  signal: AbortSignal
  /**
   * Requests in the order of their end. After a break, some may be told twice; their `id` is the same then.
   */
  onRequests(requests: EdgeRequest[], cursor: string): void
}
/** One request as the edge logged it at its end. */
export interface EdgeRequest {
  /** Unique in the installation; the app got it as `X-Request-Id` unless the client sent one. */
  id: string
  app_id: string
  /** When it arrived, in milliseconds since 1970. */
  at_ms: number
  /** Address of the client, told by a trusted proxy where there is one. */
  client: string
  method: string
  /** The name that it asked for, in lower case, without the port. */
  host: string
  /** Path and query as sent, up to 1 KiB; a query may hold secrets. */
  target: string
  version: string
  secure: boolean
  status: number
  bytes_in: number
  bytes_out: number
  user_agent: string
  /** The instance that was asked, `address:port`; null when the edge answered by itself. */
  server: string | null
  /** Two letters by which HAProxy says who ended it in which phase; `--` for a request that went well. */
  end: string
  /** How long each phase took; null for one that it never came to. */
  receive_ms: number | null
  queue_ms: number | null
  connect_ms: number | null
  response_ms: number | null
  total_ms: number
}

export interface IngressStatus {
  running: boolean
  version?: string
  /** What is wrong, when something is: fit for a user. */
  message?: string
  /** Routes that the last `apply` left out, each with the reason. */
  refused?: RefusedRoute[]
  /** Ids of certificates that the last `apply` left out; they are to be set once more. */
  refused_certificates?: string[]
}
export interface RefusedRoute {
  route_id: string
  message: string
}

/** The edge cannot be reached or refused a change. `message` is fit for a user. */
export class IngressError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'IngressError'
  }
}
