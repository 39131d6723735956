import { addAbortSignal } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { isIP } from 'node:net'
import type { GuardedClient } from '#server/platform/outbound/client'
import { OutboundError, type Dial } from '#server/platform/outbound/outbound'

/** What is to be looked at. */
export interface UptimeTarget {
  kind: 'http' | 'tcp' | 'tls'
  /** An address for `http`, `host:port` for the others. */
  target: string
  timeout_s: number
  /** Status that is expected; any below 400 when null. */
  expected_status: number | null
  expected_text: string | null
  days_left: number | null
}
/** How a look ended. `error` is a sentence and null when all was well. */
export interface ProbeResult {
  error: string | null
  latency_ms: number
}
export interface ProbeTools {
  client: GuardedClient
  dial: Dial
  /** Ends a look that is under way. */
  signal: AbortSignal
  now(): number
  monotonic_ms(): number
}

const MOST_BYTES = 1_048_576
const DAY_MS = 86_400_000

/** `host:port`, with brackets around an IPv6 address. */
export function splitTarget(target: string): { host: string; port: number } | undefined {
  const match = /^(?:\[([0-9a-f:.]+)\]|([A-Za-z0-9_.-]+)):(\d{1,5})$/i.exec(target)
  const port = Number(match?.[3])
  return match && port > 0 && port < 65_536 ? { host: (match[1] ?? match[2])!, port } : undefined
}

const isRedirect = (status: number | null) => status !== null && status >= 300 && status < 400

async function probeHttp(check: UptimeTarget, { client, signal }: ProbeTools): Promise<string | null> {
  const answer = await client.send(check.target, {
    signal,
    timeout_ms: check.timeout_s * 1000,
    max_bytes: MOST_BYTES,
    // One that is expected is looked at itself.
    max_redirects: isRedirect(check.expected_status) ? 0 : 3,
    protocols: ['https:', 'http:'],
  })
  const is_expected =
    check.expected_status === null ? answer.status < 400 : answer.status === check.expected_status
  if (!is_expected) {
    await answer.discard()
    return `It answered ${answer.status}${check.expected_status === null ? '' : `, not ${check.expected_status}`}.`
  }
  if (check.expected_text === null) {
    await answer.discard()
    return null
  }
  return (await answer.text()).includes(check.expected_text)
    ? null
    : 'Its answer does not hold the expected text.'
}

/** The end of the certificate that a server shows, whether or not it is trusted. */
async function certificateEnd(check: UptimeTarget, { dial, signal }: ProbeTools): Promise<number> {
  const { host, port } = splitTarget(check.target)!
  const socket = await dial(host, port, { timeout_ms: check.timeout_s * 1000, signal })
  return new Promise((resolve, reject) => {
    const tls = connectTls({
      socket,
      ...(isIP(host) ? {} : { servername: host }),
      // What is looked at is the date, also of a certificate that nobody trusts; nothing is sent to the server.
      rejectUnauthorized: false,
    })
    tls.setTimeout(check.timeout_s * 1000, () => tls.destroy(new Error('timeout')))
    addAbortSignal(signal, tls)
    tls.once('error', reject)
    tls.once('secureConnect', () => {
      const { valid_to } = tls.getPeerCertificate()
      tls.destroy()
      resolve(Date.parse(valid_to))
    })
  })
}

async function look(check: UptimeTarget, tools: ProbeTools): Promise<string | null> {
  if (check.kind === 'http') return probeHttp(check, tools)
  if (check.kind === 'tcp') {
    const { host, port } = splitTarget(check.target)!
    const { signal } = tools
    ;(await tools.dial(host, port, { timeout_ms: check.timeout_s * 1000, signal })).destroy()
    return null
  }
  const left_ms = (await certificateEnd(check, tools)) - tools.now()
  if (Number.isNaN(left_ms)) return 'Its certificate has no end that can be read.'
  const days = Math.floor(left_ms / DAY_MS)
  if (left_ms < 0) return 'Its certificate has expired.'
  return days < (check.days_left ?? 14)
    ? `Its certificate expires in ${days} ${days === 1 ? 'day' : 'days'}.`
    : null
}

/** Looks once. Never throws. */
export async function probe(check: UptimeTarget, tools: ProbeTools): Promise<ProbeResult> {
  const begun = tools.monotonic_ms()
  const error = await look(check, tools).catch((thrown: unknown) =>
    thrown instanceof OutboundError ? thrown.message : 'It did not answer as it should.',
  )
  return { error, latency_ms: Math.round(tools.monotonic_ms() - begun) }
}
