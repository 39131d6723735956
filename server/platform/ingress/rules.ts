import { createHmac, randomBytes } from 'node:crypto'
import type { BasicAuth, Route } from './ingress.ts'

/** Makes what a route needs to check a name and a password, without keeping the password. */
export function createBasicAuth(username: string, password: string): BasicAuth {
  const salt = randomBytes(24).toString('base64')
  return { salt, digest: digestOf(`Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`, salt) }
}
function digestOf(header: string, salt: string): string {
  return createHmac('sha256', Buffer.from(salt, 'base64')).update(header).digest('hex').toUpperCase()
}

/** A text as one word of the configuration. */
const quote = (text: string): string => `"${text.replace(/[\\"$]/g, '\\$&')}"`

/**
 * The rules of one route, as lines of its backend. Changing them is a seamless reload, for they are loaded, not set; what
 * changes often (servers, names, forcing HTTPS, maintenance) is not among them.
 */
export function renderRules(route: Route | undefined): string[] {
  if (!route) return []
  const lines: string[] = []
  if (route.allowed_addresses) lines.push(`  http-request return status 403 default-errorfiles unless { ${route.allowed_addresses.length > 0 ? `src ${route.allowed_addresses.join(' ')}` : 'always_false'} }`)
  if (route.basic_auth) {
    lines.push(`  http-request auth realm Restricted unless { req.hdr(authorization),hmac(sha256,${route.basic_auth.salt}),hex -m str ${route.basic_auth.digest} }`)
    lines.push('  http-request del-header authorization')
  }
  if (route.body_limit_bytes !== undefined) {
    lines.push('  http-request return status 411 content-type text/plain string "The size of the body must be stated." if { req.hdr(transfer-encoding) -m found }')
    lines.push(`  http-request return status 413 default-errorfiles if { req.body_size gt ${route.body_limit_bytes} }`)
  }
  if (route.request_timeout_ms !== undefined) lines.push(`  timeout server ${route.request_timeout_ms}ms`)
  for (const [name, value] of Object.entries(route.response_headers ?? {})) {
    const when = name.toLowerCase() === 'strict-transport-security' ? ' if { var(txn.proto) -m str https }' : ''
    lines.push(`  http-response set-header ${name} ${quote(value.replaceAll('%', '%%'))}${when}`)
  }
  return lines
}
