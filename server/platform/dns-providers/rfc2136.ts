import { randomBytes } from 'node:crypto'
import * as v from 'valibot'
import { run as runCommand, type Run, SpawnError } from '#server/kernel/process'
import { type OutboundPolicy, OutboundError } from '#server/platform/outbound/outbound'
import { checkRecord, probeName, ZoneName } from './names.ts'
import { type DnsProvider, type DnsProviderDescriptor, DnsProviderError } from './provider.ts'

const TTL_S = 60
const TIMEOUT_S = 20
const HOST = /^[a-z0-9_:]([a-z0-9_.:-]{0,251}[a-z0-9_.])?$/

const Config = v.pipe(
  v.strictObject({
    server: v.pipe(
      v.string(),
      v.trim(),
      v.toLowerCase(),
      v.regex(HOST, 'must be the name or address of a name server.'),
      v.title('Server'),
      v.description(
        'Primary name server of the zone: a name or an IP address that this server may connect to.',
      ),
      v.examples(['ns1.example.com']),
    ),
    port: v.pipe(
      v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(65_535)), 53),
      v.title('Port'),
      v.description('TCP port of the name server.'),
      v.examples([53]),
    ),
    zone: ZoneName,
    key_name: v.pipe(
      v.string(),
      v.trim(),
      v.toLowerCase(),
      v.maxLength(255),
      v.regex(
        /^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_.])?$/,
        'must be the name of a key, as the name server knows it.',
      ),
      v.title('Key name'),
      v.description('Name of the TSIG key.'),
      v.examples(['portreeve']),
    ),
    algorithm: v.pipe(
      v.optional(
        v.picklist(['hmac-sha256', 'hmac-sha512', 'hmac-sha384', 'hmac-sha224', 'hmac-sha1']),
        'hmac-sha256',
      ),
      v.title('Algorithm'),
      v.description('Algorithm of the TSIG key.'),
      v.examples(['hmac-sha256']),
    ),
    secret: v.pipe(
      v.string(),
      v.trim(),
      v.maxLength(1024),
      v.regex(
        /^(?=.{8,})([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/,
        'must be the secret of the key in Base64.',
      ),
      v.title('Secret'),
      v.description('The key itself, in Base64. Never shown again.'),
      v.examples(['bG9uZyBlbm91Z2ggdG8gYmUgYSBrZXk=']),
    ),
  }),
  v.title('Dynamic update (RFC 2136)'),
)
type Config = v.InferOutput<typeof Config>

/** What the answer codes of a name server mean for the person who set the key up. */
const REASONS: readonly [pattern: RegExp, sentence: (config: Config) => string][] = [
  [
    /BADKEY|BADSIG|tsig verify failure|tsig indicates error/i,
    ({ key_name }) =>
      `The name server refused the key ${key_name}: its name, algorithm or secret is not the one that the server knows.`,
  ],
  [
    /BADTIME|clocks are unsynchronized/i,
    () =>
      'The name server refused the key because the clocks of the two servers differ by more than five minutes.',
  ],
  [
    /REFUSED/,
    ({ key_name, zone }) =>
      `The name server does not let the key ${key_name} change TXT records of the zone ${zone}.`,
  ],
  [/NOTAUTH|NOTZONE/, ({ zone }) => `The name server is not the primary one of the zone ${zone}.`],
  [
    /connection refused|timed out|unreachable|network|end of file|reset/i,
    ({ server, port }) => `The name server ${server} does not answer on TCP port ${port}.`,
  ],
]

function explain(config: Config, output: string): DnsProviderError {
  const sentence = REASONS.find(([pattern]) => pattern.test(output))?.[1]
  if (sentence) return new DnsProviderError(sentence(config))
  const code = /update failed: ([A-Z]+)/.exec(output)?.[1]
  return new DnsProviderError(`The name server refused the update${code ? ` (${code})` : ''}.`)
}

function createProvider(config: Config, policy: OutboundPolicy, run: Run): DnsProvider {
  const { server, port, zone, key_name, algorithm, secret } = config

  /**
   * Sends one signed update. The key travels over standard input: no argument list, environment or file shows
   * it.
   */
  async function update(changes: readonly string[], signal: AbortSignal | undefined): Promise<void> {
    try {
      const [found] = await policy.resolve(server, port, signal)
      const script = [
        `server ${found!.address} ${port}`,
        `zone ${zone}.`,
        `key ${algorithm}:${key_name} ${secret}`,
        ...changes,
        'send',
        'quit',
        '',
      ].join('\n')
      const result = await run(['nsupdate', '-v', '-t', String(TIMEOUT_S)], {
        cwd: '/',
        stdin: script,
        timeout_ms: (TIMEOUT_S + 5) * 1000,
        max_output_bytes: 8192,
        ...(signal ? { signal } : {}),
      })
      if (result.aborted) throw new DnsProviderError('The update of the zone was cancelled.')
      if (result.timed_out)
        throw new DnsProviderError(`The name server ${server} does not answer on TCP port ${port}.`)
      if (result.exit_code !== 0) throw explain(config, `${result.stdout}\n${result.stderr}`)
    } catch (error) {
      if (error instanceof OutboundError)
        throw new DnsProviderError(`The name server cannot be asked: ${error.message}`, {
          cause: error,
        })
      if (error instanceof SpawnError)
        throw new DnsProviderError(
          'The command nsupdate is not installed on this server. Run install.sh again, or install the package bind9-dnsutils.',
          { cause: error },
        )
      throw error
    }
  }
  const add = (name: string, value: string) => `update add ${name}. ${TTL_S} TXT "${value}"`
  const remove = (name: string, value: string) => `update delete ${name}. TXT "${value}"`
  return {
    async check(signal) {
      // One update that leaves the zone as it was, yet needs every right that a challenge needs.
      const value = `portreeve-${randomBytes(12).toString('hex')}`
      await update([add(probeName(zone), value), remove(probeName(zone), value)], signal)
    },
    async addTxt(name, value, signal) {
      checkRecord(zone, name, value)
      await update([add(name, value)], signal)
    },
    async removeTxt(name, value, signal) {
      checkRecord(zone, name, value)
      await update([remove(name, value)], signal)
    },
  }
}

/**
 * Zones on any name server that takes signed dynamic updates (BIND, Knot, PowerDNS, Windows), over TCP. `run`
 * stands in for the command in tests.
 */
export const createRfc2136 = (run: Run = runCommand): DnsProviderDescriptor<typeof Config> => ({
  name: 'rfc2136',
  title: 'Dynamic update (RFC 2136)',
  config: Config,
  secrets: ['secret'],
  create: (config, { policy }) => createProvider(config, policy, run),
})
export const rfc2136 = createRfc2136()
