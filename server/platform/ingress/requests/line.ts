import type { EdgeRequest } from '../ingress.ts'
import { LINE_FIELDS } from '../render/log.ts'

/** A control character in a header arrives as it is, inside of a text of the line. */
const CONTROL = /[\u0000-\u001f\u007f]/g
/** The edge escapes quotes and backslashes as JSON does, and a bracket, which JSON does not. */
const ESCAPED = /\\./g
/**
 * A request over HTTP/2, or through a proxy, names its whole address; a user and a password may stand in it.
 */
const AUTHORITY = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i
/** The edge writes some characters of an address in a form of its own. */
const ENCODED = /#(?=[0-9A-F]{2})/g

type Name = (typeof LINE_FIELDS)[number]
type Fields = Partial<Record<Name, unknown>>
/** The edge writes `-` for a text that is not there. */
const text = (fields: Fields, name: Name): string =>
  typeof fields[name] === 'string' && fields[name] !== '-' ? fields[name] : ''
const count = (fields: Fields, name: Name): number =>
  typeof fields[name] === 'number' && fields[name] > 0 ? fields[name] : 0
/** The edge writes -1 for a phase that the request never came to. */
const phase = (fields: Fields, name: Name): number | null =>
  typeof fields[name] === 'number' && fields[name] >= 0 ? fields[name] : null

/**
 * Reads one line of the edge's log; undefined for what belongs to no app, and for what is no line of a
 * request.
 */
export function parseRequestLine(line: string): EdgeRequest | undefined {
  if (!line.startsWith('[')) return undefined
  let fields: Fields
  try {
    const values = JSON.parse(
      line.replace(CONTROL, ' ').replace(ESCAPED, (escape) => (escape === '\\]' ? ']' : escape)),
    ) as unknown[]
    fields = Object.fromEntries(LINE_FIELDS.map((name, index) => [name, values[index]]))
  } catch {
    return undefined
  }
  const [id, app_id, method] = [
    text(fields, 'id'),
    text(fields, 'route').split('|')[1] ?? '',
    text(fields, 'method'),
  ]
  if (id === '' || app_id === '' || method.startsWith('<')) return undefined
  const target = text(fields, 'target').replace(AUTHORITY, '').replace(ENCODED, '%')
  const server = text(fields, 'server')
  return {
    id,
    app_id,
    method,
    at_ms: count(fields, 'at'),
    client: text(fields, 'client'),
    host: text(fields, 'host'),
    target: target.startsWith('/') ? target : `/${target}`,
    version: text(fields, 'version'),
    secure: text(fields, 'proto') === 'https',
    status: count(fields, 'status'),
    bytes_in: count(fields, 'bytes_in'),
    bytes_out: count(fields, 'bytes_out'),
    user_agent: text(fields, 'agent'),
    server:
      server === '' || server.startsWith('<')
        ? null
        : server.replace(/_probed$/, '').replace(/_(\d+)$/, ':$1'),
    end: text(fields, 'end'),
    receive_ms: phase(fields, 'receive'),
    queue_ms: phase(fields, 'queue'),
    connect_ms: phase(fields, 'connect'),
    response_ms: phase(fields, 'response'),
    total_ms: count(fields, 'total'),
  }
}
