import { APPS_MAP } from './maps.ts'
import type { EdgeSettings } from './render.ts'

/** Where a worker tells its log, by its path in the edge's folder. */
export const LOG_SOCKET = 'run/log.sock'
/** The memory in which a worker keeps its latest requests. */
export const LOG_RING = 'requests'
const RING_BYTES = 8 * 1024 * 1024
const MAX_LINE_BYTES = 4096

/**
 * Where the log of requests is read. The socket can show things and change none of them. Whoever listens may be silent for a day;
 * a listener never holds up a request, for what does not fit is overwritten.
 */
export function renderLogSocket({ owner_uid }: Pick<EdgeSettings, 'owner_uid'>): string[] {
  return [`  stats socket unix@/edge/${LOG_SOCKET} uid ${owner_uid} mode 600 level operator`, '  stats timeout 1d']
}

/** The last requests of a worker, in its memory: Portreeve reads them from where it stopped, also after a restart of its own. */
export const RING = [`ring ${LOG_RING}`, '  format raw', `  maxlen ${MAX_LINE_BYTES}`, `  size ${RING_BYTES}`]

/** What a client may choose, or what is missing at times, as a text in quotes that nothing in it can end. */
const quoted = (item: string): string => `%{+Q,+E}${item}`
/**
 * What every frontend logs: a line stands for one request and is one JSON object, so that nothing in it can look like another
 * line. It is spelled out here, because the edge's own way to write JSON takes nearly twice the time.
 */
const FIELDS = {
  id: '"%ID"', app: quoted('[var(txn.app)]'), at: '%[accept_date(ms)]', client: '"%ci"', method: quoted('HM'), host: quoted('[var(txn.host)]'), target: quoted('HU'), version: quoted('HV'), proto: '"%f"',
  status: '%ST', bytes_out: '%B', bytes_in: '%U', agent: quoted('[capture.req.hdr(0)]'), server: quoted('s'), end: '"%ts"',
  idle: '%Ti', receive: '%TR', queue: '%Tw', connect: '%Tc', response: '%Tr', total: '%Ta',
}
export const LOG_OF_FRONTEND = [
  `  log ring@${LOG_RING} len ${MAX_LINE_BYTES} local0`,
  `  log-format '{${Object.entries(FIELDS).map(([name, value]) => `"${name}": ${value}`).join(', ')}}'`,
  "  unique-id-format '%{+X}o%Ts-%pid-%rt'",
  '  capture request header user-agent len 256',
]

/** Behind the choice of the backend: which app a line is about. A line about none is not told to anybody. */
export const LOG_APP = `  http-request set-var(txn.app) var(txn.backend),map(/edge/${APPS_MAP})`

/** In a backend whose requests nobody wants to hear of: names of no route, and requests that another worker answers and logs. */
export const UNLOGGED = '  http-request set-log-level silent'
