import { isIPv6 } from 'node:net'
import { classifyAddress } from '#server/platform/outbound/addresses'
import type { ServiceContext } from './context.ts'
import { at, type Fields, isFields, type Issues, NOTHING_SET } from './issues.ts'
import { readNumber, readText, readTexts } from './values.ts'

/** Ports of protocols that no browser speaks: such a service stays private even where the file publishes it. */
const NOT_HTTP = new Set([
  21, 22, 25, 53, 110, 111, 123, 139, 143, 161, 389, 445, 465, 514, 587, 636, 993, 995, 1433, 1521, 1883,
  2049, 2181, 3306, 3389, 4222, 5432, 5671, 5672, 6379, 6380, 8883, 9042, 9092, 11211, 26257, 27017, 27018,
  33060,
])
const LOOPBACK = /^(127\.|\[?::1\]?$|localhost$)/
const SHORT = /^(?:(.*?):)??(?:([0-9]*(?:-[0-9]+)?):)?([0-9]+)(?:-([0-9]+))?(?:\/(tcp|udp|sctp))?$/
/** An address in brackets, or what has no colon; one of IPv6 may stand without brackets too. */
const HOST = /^(\[[^\]]*\]|[^:[\]]*)$/
const MAX_RANGE = 100

interface Port {
  number: number
  tcp: boolean
  /** Whether only the server itself or its own network would reach it. */
  inner: boolean
}

/** Whether a port at an address is not for everybody: one of a private network is none that gets a domain. */
function isInner(host: string): boolean {
  if (host === '') return false
  return LOOPBACK.test(host) || classifyAddress(host.replace(/^\[(.*)\]$/, '$1')) === 'private'
}

/** Ports of a service, and the one that gets a domain. */
export function readPorts(
  context: ServiceContext,
  fields: Fields,
  path: string,
): { ports: number[]; public_port: number | null } {
  const { issues } = context
  const list = Array.isArray(fields.ports) ? fields.ports : []
  if (fields.ports !== undefined && fields.ports !== null && !Array.isArray(fields.ports))
    issues.add(at(path, 'ports'), 'must be a list.')
  if (list.length > MAX_RANGE) issues.add(at(path, 'ports'), `has more than ${MAX_RANGE} entries.`)
  const published = list.slice(0, MAX_RANGE).flatMap((value, index) => {
    const here = at(at(path, 'ports'), index)
    return isFields(value) ? longForm(context, value, here) : shortForm(context, value, here)
  })
  const exposed = readTexts(issues, fields.expose, at(path, 'expose')).flatMap((text, index) =>
    shortForm(context, text, at(at(path, 'expose'), index)),
  )
  const found = published.find(({ tcp, inner, number }) => tcp && !inner && !NOT_HTTP.has(number))
  const ports = [...published, ...exposed].filter(({ tcp }) => tcp).map(({ number }) => number)
  const chosen = chosenPort(issues, fields, path)
  const usual = found?.number ?? (chosen === true ? ports[0] : undefined) ?? null
  const public_port = typeof chosen === 'number' || chosen === null ? chosen : usual
  if (chosen === true && public_port === null)
    issues.add(at(at(path, 'x-portreeve'), 'public'), 'needs a port: the service names none.')
  return { ports: [...new Set([...(public_port ? [public_port] : []), ...ports])], public_port }
}

/** What `x-portreeve.public` says: a port, null for none, true for the first one. */
function chosenPort(issues: Issues, fields: Fields, path: string): number | true | null | undefined {
  const own = fields['x-portreeve']
  const chosen = isFields(own) ? own.public : undefined
  if (chosen === undefined || chosen === true || chosen === 'true')
    return chosen === undefined ? undefined : true
  if (chosen === null || chosen === false || chosen === 'false') return null
  return readNumber(issues, chosen, at(at(path, 'x-portreeve'), 'public'), {
    min: 1,
    max: 65_535,
    whole: true,
  })
}

function shortForm({ issues, strict, room }: ServiceContext, value: unknown, path: string): Port[] {
  const text = readText(issues, value, path)
  if (text === undefined) return []
  if (/^:*$/.test(text)) {
    if (strict) issues.add(path, NOTHING_SET)
    return []
  }
  const [, host = '', , first, last, protocol = 'tcp'] = (text.length < 128 && SHORT.exec(text)) || []
  if (first === undefined || !(HOST.test(host) || isIPv6(host))) {
    issues.add(path, 'must be a port, such as 8080:80.')
    return []
  }
  const way = { tcp: protocol === 'tcp', inner: isInner(host) }
  const numbers = range(issues, Number(first), Number(last ?? first), path)
  return room.take('ports', numbers.length) ? numbers.map((number) => ({ number, ...way })) : []
}

function range(issues: Issues, first: number, last: number, path: string): number[] {
  if (first < 1 || last > 65_535 || last < first || last - first >= MAX_RANGE) {
    issues.add(path, `must name ports from 1 to 65535, at most ${MAX_RANGE} of them.`)
    return []
  }
  return Array.from({ length: last - first + 1 }, (_, index) => first + index)
}

function longForm(context: ServiceContext, fields: Fields, path: string): Port[] {
  const { issues } = context
  const target = readText(issues, fields.target, at(path, 'target'))
  if (target === undefined) {
    issues.add(at(path, 'target'), 'is required.')
    return []
  }
  const protocol = readText(issues, fields.protocol, at(path, 'protocol')) ?? 'tcp'
  const host = readText(issues, fields.host_ip, at(path, 'host_ip')) ?? ''
  const way = { tcp: protocol === 'tcp', inner: isInner(host) }
  return shortForm(context, target, at(path, 'target')).map((port) => ({ ...port, ...way }))
}
