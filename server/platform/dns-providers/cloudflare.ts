import { randomBytes } from 'node:crypto'
import * as v from 'valibot'
import { shaped } from '#server/kernel/json'
import type { Answer, GuardedClient } from '#server/platform/outbound/client'
import { OutboundError } from '#server/platform/outbound/outbound'
import { checkRecord, probeName, ZoneName } from './names.ts'
import { type DnsProvider, type DnsProviderDescriptor, DnsProviderError } from './provider.ts'

const API = 'https://api.cloudflare.com/client/v4'
const TTL_S = 60
const PAGE = 100
/** The same record is there already. */
const IDENTICAL = 81058

const Config = v.pipe(
  v.strictObject({
    zone: ZoneName,
    api_token: v.pipe(
      v.string(),
      v.trim(),
      v.regex(
        /^[A-Za-z0-9._-]{20,200}$/,
        'must be an API token as Cloudflare shows it once, without «Bearer».',
      ),
      v.title('API token'),
      v.description('Token with the permissions Zone: Read and DNS: Edit for this zone. Never shown again.'),
      v.examples(['v1.0-example-token-0123456789']),
    ),
    proxied: v.pipe(
      v.optional(v.boolean(), false),
      v.title('Proxied'),
      v.description(
        'Whether records of this zone point at Cloudflare’s proxy, so that names resolve to its addresses instead of this server’s.',
      ),
      v.examples([false]),
    ),
  }),
  v.title('Cloudflare'),
)
type Config = v.InferOutput<typeof Config>

const Errors = v.array(v.object({ code: v.number(), message: v.string() }))
const Envelope = v.object({
  success: v.boolean(),
  errors: v.optional(Errors, []),
  result: v.optional(v.unknown()),
})
const Zones = v.array(v.object({ id: v.string(), name: v.string() }))
const Records = v.array(v.object({ id: v.string(), type: v.string(), content: v.string() }))
type Envelope = v.InferOutput<typeof Envelope>
const JsonEnvelope = v.pipe(v.string(), v.parseJson(), Envelope)

/** The API may give a text back in the quotes of zone files. */
const unquoted = (content: string) => content.replace(/^"(.*)"$/s, '$1')

function refusal(answer: Answer, { errors }: Envelope): DnsProviderError {
  if (
    answer.status === 401 ||
    answer.status === 403 ||
    errors.some(({ code }) => [6003, 9109, 10000].includes(code))
  ) {
    return new DnsProviderError(
      'Cloudflare refused the API token. It needs the permissions Zone: Read and DNS: Edit for this zone.',
    )
  }
  if (answer.status === 429)
    return new DnsProviderError(
      `Cloudflare takes no more requests for now; try again in ${/^\d+$/.test(answer.headers['retry-after'] ?? '') ? answer.headers['retry-after'] : '300'} seconds.`,
    )
  const said = errors.map(({ code, message }) => `${message.slice(0, 200)} (${code})`).join('; ')
  return new DnsProviderError(
    `Cloudflare answered with an error${said ? `: ${said}` : ` (HTTP ${answer.status}).`}`,
  )
}

/** Calls of the API with one token. Every fault is a DnsProviderError. */
function createCalls(api_base: string, token: string, client: GuardedClient) {
  return async function call(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    signal: AbortSignal | undefined,
    body?: object,
    accepted: readonly number[] = [],
  ): Promise<unknown> {
    try {
      const answer = await client.send(`${api_base}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(body ? { 'content-type': 'application/json' } : {}),
        },
        ...(body ? { body: JSON.stringify(body) } : {}),
        ...(signal ? { signal } : {}),
      })
      const read = shaped(JsonEnvelope, await answer.text())
      if (!read)
        throw new DnsProviderError(`Cloudflare did not answer as its API does (HTTP ${answer.status}).`)
      const { success, errors, result } = read
      if (!success && !(errors.length > 0 && errors.every(({ code }) => accepted.includes(code))))
        throw refusal(answer, read)
      return result
    } catch (error) {
      if (error instanceof OutboundError)
        throw new DnsProviderError(`Cloudflare cannot be asked: ${error.message}`, { cause: error })
      throw error
    }
  }
}

function createProvider({ zone, api_token }: Config, client: GuardedClient, api_base: string): DnsProvider {
  const call = createCalls(api_base, api_token, client)
  let zone_id: string | undefined
  async function records(signal: AbortSignal | undefined): Promise<string> {
    if (zone_id === undefined) {
      const found = shaped(
        Zones,
        await call('GET', `/zones?${String(new URLSearchParams({ name: zone, per_page: '50' }))}`, signal),
      )
      zone_id = found?.find(({ name }) => name.toLowerCase() === zone)?.id
    }
    if (zone_id === undefined)
      throw new DnsProviderError(
        `The API token reaches no zone ${zone}. Check the zone's name and what the token is limited to.`,
      )
    return `/zones/${encodeURIComponent(zone_id)}/dns_records`
  }
  async function addTxt(name: string, value: string, signal?: AbortSignal): Promise<void> {
    checkRecord(zone, name, value)
    await call(
      'POST',
      await records(signal),
      signal,
      { type: 'TXT', name, content: `"${value}"`, ttl: TTL_S },
      [IDENTICAL],
    )
  }
  async function removeTxt(name: string, value: string, signal?: AbortSignal): Promise<void> {
    checkRecord(zone, name, value)
    const path = await records(signal)
    const found = shaped(
      Records,
      await call(
        'GET',
        `${path}?${String(new URLSearchParams({ type: 'TXT', name, per_page: String(PAGE) }))}`,
        signal,
      ),
    )
    for (const { id, content } of found ?? []) {
      if (unquoted(content) === value) await call('DELETE', `${path}/${encodeURIComponent(id)}`, signal)
    }
  }
  return {
    addTxt,
    removeTxt,
    async check(signal) {
      const value = `portreeve-${randomBytes(12).toString('hex')}`
      await addTxt(probeName(zone), value, signal)
      await removeTxt(probeName(zone), value, signal)
    },
  }
}

/**
 * Zones at Cloudflare, through its API. `api_base` stands in for its address in tests; users cannot set it.
 */
export const createCloudflare = (api_base = API): DnsProviderDescriptor<typeof Config> => ({
  name: 'cloudflare',
  title: 'Cloudflare',
  config: Config,
  secrets: ['api_token'],
  create: (config, { client }) => createProvider(config, client, api_base),
})
export const cloudflare = createCloudflare()
