import type { EdgeSettings } from '../edge-settings.ts'

/** Where a worker tells its log, by its path in the edge's folder. */
export const LOG_SOCKET = 'run/log.sock'
/** The memory in which a worker keeps its latest requests. */
export const LOG_RING = 'requests'
const RING_BYTES = 8 * 1024 * 1024
const MAX_LINE_BYTES = 4096

/**
 * Where the log of requests is read. The socket can show things and change none of them. Whoever listens may
 * be silent for a day;
 * a listener never holds up a request, for what does not fit is overwritten.
 */
export function renderLogSocket({ owner_uid }: Pick<EdgeSettings, 'owner_uid'>): string[] {
  return [
    `  stats socket unix@/edge/${LOG_SOCKET} uid ${owner_uid} mode 600 level operator`,
    '  stats timeout 1d',
  ]
}

/**
 * The last requests of a worker, in its memory: Portreeve reads them from where it stopped, also after a
 * restart of its own.
 */
export const RING = [`ring ${LOG_RING}`, '  format raw', `  maxlen ${MAX_LINE_BYTES}`, `  size ${RING_BYTES}`]

/** What a client may choose, or what is missing at times, as a text in quotes that nothing in it can end. */
const quoted = (item: string): string => `%{+Q,+E}${item}`

/** What a line of the log says, by position. */
export const LINE_FIELDS = [
  'id',
  'route',
  'client',
  'proto',
  'at',
  'method',
  'host',
  'target',
  'version',
  'status',
  'bytes_out',
  'bytes_in',
  'agent',
  'server',
  'end',
  'idle',
  'receive',
  'queue',
  'connect',
  'response',
  'total',
] as const
/** The beginning of the line of the request with this id. */
export const lineBeginning = (id: string): string => `["${id}",`

/**
 * What every frontend logs: a line stands for one request and is one JSON list, so that nothing in it can
 * look like another line. It is spelled out, because the edge's own way to write JSON takes nearly twice the
 * time, and has no names, because each character of a format is paid for in each request. So is turning an
 * address into text: where no proxy speaks for others, that is done once for a connection, and also serves
 * what the app is told.
 */
export function renderLog({ trusted_proxies }: Pick<EdgeSettings, 'trusted_proxies'>): string[] {
  const believed = trusted_proxies.length > 0
  const format = [
    '"%ID"',
    '"%[var(txn.route)]"',
    believed ? '"%ci"' : '"%[var(sess.client)]"',
    '"%f"',
    '%[accept_date(ms)]',
    quoted('HM'),
    quoted('[var(txn.host)]'),
    quoted('HU'),
    quoted('HV'),
    '%ST',
    '%B',
    '%U',
    quoted('[capture.req.hdr(0)]'),
    quoted('s'),
    '"%ts"',
    '%Ti',
    '%TR',
    '%Tw',
    '%Tc',
    '%Tr',
    '%Ta',
  ].join(',')
  return [
    `  log ring@${LOG_RING} len ${MAX_LINE_BYTES} local0`,
    ...(believed ? [] : ['  tcp-request session set-var-fmt(sess.client) %ci']),
    `  log-format '[${format}]'`,
    "  unique-id-format '%Ts-%pid-%rt'",
    '  capture request header user-agent len 256',
  ]
}

/**
 * In a backend whose requests nobody wants to hear of: names of no route, and requests that another worker
 * answers and logs.
 */
export const UNLOGGED = '  http-request set-log-level silent'
