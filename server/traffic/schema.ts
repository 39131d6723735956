import * as v from 'valibot'

const Duration = (what: string) =>
  v.nullable(
    v.pipe(v.number(), v.description(`${what}, in milliseconds; null when the request never came to it.`)),
  )

/**
 * One request of an app as the edge saw it. A query keeps its names; values that look like secrets are
 * masked.
 */
export const AccessRequest = v.pipe(
  v.object({
    id: v.pipe(
      v.string(),
      v.description('The app got it as `X-Request-Id` unless the client sent one.'),
      v.examples(['6B019F1D-0009-0007']),
    ),
    client: v.pipe(v.string(), v.description('Address of the client.'), v.examples(['203.0.113.7'])),
    method: v.pipe(v.string(), v.examples(['GET'])),
    host: v.pipe(v.string(), v.examples(['shop.example.com'])),
    path: v.pipe(
      v.string(),
      v.description(
        'Path and query, at most 1 KiB; secrets of the app and values that look like secrets are masked.',
      ),
      v.examples(['/orders?page=2']),
    ),
    version: v.pipe(v.string(), v.examples(['HTTP/2.0'])),
    secure: v.boolean(),
    status: v.pipe(v.number(), v.examples([200])),
    bytes_in: v.number(),
    bytes_out: v.number(),
    user_agent: v.string(),
    server: v.nullable(
      v.pipe(
        v.string(),
        v.description('The instance that answered; null when the edge did so itself.'),
        v.examples(['10.64.0.5:3000']),
      ),
    ),
    end: v.pipe(
      v.string(),
      v.description('How the request ended, in two letters of HAProxy; `--` when it went well.'),
    ),
    receive_ms: Duration('Until the whole request had arrived'),
    queue_ms: Duration('In the queue of the app'),
    connect_ms: Duration('Until the instance took the connection'),
    response_ms: Duration('Until the instance began to answer'),
    total_ms: v.pipe(
      v.number(),
      v.description('From the first byte of the request to the last byte of the answer.'),
    ),
  }),
  v.title('AccessRequest'),
)
export type AccessRequest = v.InferOutput<typeof AccessRequest>

/** A line of an app's access log: a request, or how many of one second are counted and not listed. */
export type AccessLine = { seq: number; at: string } & (
  | { request: AccessRequest; omitted?: undefined }
  | { omitted: number; request?: undefined }
)

/** Upper ends of the classes of latency. */
export const LATENCY_BOUNDS_MS = [
  1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1_000, 1_500, 2_000, 3_000, 5_000,
  7_000, 10_000, 15_000, 20_000, 30_000, 60_000,
]
