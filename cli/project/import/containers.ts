import { own } from '#server/kernel/own'
import { request } from 'node:http'
import { CommandError } from '../../terminal.ts'
import { EXIT } from '../../client/exit-codes.ts'
import { compact, createMoved, isFields, listOf, type Moved, numberOf, textOf } from './moved.ts'

type Fields = Record<string, any>
type Adding = ReturnType<typeof createMoved>
/** One question to an engine. */
export type AskEngine = (path: string) => Promise<unknown>

const ANSWER_MS = 30_000
const MOST_BYTES = 64 * 1024 * 1024

/** Asks the engine at `DOCKER_HOST`, or at the usual socket; it only reads. */
export function engineAt(address = process.env.DOCKER_HOST || 'unix:///var/run/docker.sock'): AskEngine {
  const url = URL.parse(address)
  if (!url || !['unix:', 'tcp:', 'http:'].includes(url.protocol))
    throw new CommandError(
      `${address} is no address of an engine. It looks like unix:///var/run/docker.sock or tcp://127.0.0.1:2375; one behind SSH is forwarded first: ssh -NL /tmp/docker.sock:/var/run/docker.sock <server>`,
      EXIT.USAGE,
    )
  const where =
    url.protocol === 'unix:'
      ? { socketPath: url.pathname }
      : { host: url.hostname, port: Number(url.port) || 2375 }
  return (path) =>
    new Promise((resolve, reject) => {
      const fail = (reason: string) =>
        reject(
          new CommandError(
            `The container engine at ${address} does not answer (${reason}).`,
            EXIT.UNREACHABLE,
          ),
        )
      const asked = request({ ...where, path, timeout: ANSWER_MS }, (answer) => {
        const chunks: Buffer[] = []
        let size = 0
        answer.on('data', (chunk: Buffer) => {
          size += chunk.length
          if (size > MOST_BYTES) asked.destroy(new Error('too much'))
          else chunks.push(chunk)
        })
        answer.on('error', (error) => fail(error.message))
        answer.on('end', () => {
          if (answer.statusCode !== 200) return fail(`status ${answer.statusCode}`)
          try {
            resolve(JSON.parse(Buffer.concat(chunks).toString()))
          } catch {
            fail('no JSON')
          }
        })
      })
      asked.on('timeout', () => asked.destroy(new Error('no answer in time')))
      asked.on('error', (error: NodeJS.ErrnoException) => fail(error.code ?? error.message))
      asked.end()
    })
}

const ENGINES: readonly (readonly [RegExp, string])[] = [
  [/(^|\/)postgres(:|@|$)/, 'postgres'],
  [/(^|\/)mysql(:|@|$)/, 'mysql'],
  [/(^|\/)mariadb(:|@|$)/, 'mariadb'],
  [/(^|\/)mongo(:|@|$)/, 'mongodb'],
  [/(^|\/)redis(:|@|$)/, 'redis'],
  [/(^|\/)valkey(:|@|$)/, 'valkey'],
  [/(^|\/)clickhouse-server(:|@|$)/, 'clickhouse'],
]
const wordsOf = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : [])
/** A word for a shell. */
const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
const environmentOf = (lines: readonly string[]): Fields =>
  Object.fromEntries(
    lines
      .filter((line) => line.indexOf('=') > 0)
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )

/** Ports of the web, the likeliest first: an engine lists what is published by its text, where 25 comes before 80. */
const OF_THE_WEB = ['80/tcp', '8080/tcp', '3000/tcp', '8000/tcp', '5000/tcp']

/** The port that requests go to: the one that is published, else the first that the image names. */
function portOf({ HostConfig = {}, Config = {} }: Fields): number | undefined {
  const names = [HostConfig.PortBindings, Config.ExposedPorts].flatMap((ports) => {
    const all = isFields(ports) ? Object.keys(ports) : []
    return [...OF_THE_WEB.filter((name) => all.includes(name)), ...all]
  })
  return numberOf(names.find((name) => name.endsWith('/tcp'))?.split('/')[0])
}

/** Labels by which proxies find a container, and the host names in them. */
const OF_PROXY = /^(traefik\.http\.routers\.|caddy|kamal|virtual\.host)/

/** Says what a container has beside its image that an app here does not get from it. */
function tellOwn(moved: Adding, at: string, one: Fields, image: Fields): void {
  const { Config = {}, HostConfig = {} } = one
  const check = isFields(Config.Healthcheck) ? JSON.stringify(Config.Healthcheck) : undefined
  if (check !== undefined && check !== JSON.stringify(image.Config?.Healthcheck))
    moved.note('refused', `${at} health check`, 'is not taken; set health_check of the app.')
  const port = portOf(one)
  for (const published of Object.keys(isFields(HostConfig.PortBindings) ? HostConfig.PortBindings : {}))
    if (published !== `${port}/tcp`)
      moved.note('refused', `${at} port ${published}`, 'is a port of the server.')
  for (const label of Object.keys(isFields(Config.Labels) ? Config.Labels : {}))
    if (OF_PROXY.test(label))
      moved.note('changed', `${at} label ${label}`, 'is not read: name its domains below domains of the app.')
}

function add(moved: Adding, one: Fields, image: Fields): void {
  const { Config = {}, HostConfig = {}, Mounts } = one
  const reference = String(Config.Image ?? '')
  const labels: Fields = Config.Labels ?? {}
  const service = textOf(labels['com.docker.compose.service'])
  const project = textOf(labels['com.docker.compose.project'])
  const name = service && project ? `${project}-${service}` : String(one.Name ?? '').replace(/^\//, '')
  const at = `container ${name}`
  const engine = ENGINES.find(([pattern]) => pattern.test(reference))?.[1]
  if (engine) return moved.addDatabase(at, name, engine, reference)
  const given = environmentOf(wordsOf(Config.Env))
  const built_in = environmentOf(wordsOf(image.Config?.Env))
  const variables = Object.fromEntries(
    Object.entries(given).filter(([key, value]) => own(built_in, key) !== value && key !== 'HOSTNAME'),
  )
  // A start command here takes the place of both.
  const command = [...wordsOf(Config.Entrypoint), ...wordsOf(Config.Cmd)]
  const usual = [...wordsOf(image.Config?.Entrypoint), ...wordsOf(image.Config?.Cmd)]
  const is_usual = JSON.stringify(command) === JSON.stringify(usual)
  const app = moved.addApp(
    at,
    name,
    compact({
      image: reference,
      port: portOf(one),
      build: is_usual ? undefined : { start_command: command.map(quoted).join(' ') },
      limits: compact({
        memory_bytes: numberOf(HostConfig.Memory),
        cpus: numberOf(HostConfig.NanoCpus) && HostConfig.NanoCpus / 1e9,
      }),
    }),
    variables,
  )
  if (/^(sha256:)?[0-9a-f]{64}$/.test(reference))
    moved.note(
      'refused',
      `${at} image`,
      'has no name: give it one, and push it where this server can pull it.',
    )
  if (HostConfig.Privileged) moved.note('refused', `${at} privileged`, 'is not possible here.')
  if (HostConfig.NetworkMode === 'host')
    moved.note('changed', `${at} network`, 'is a network of the project here, not that of the server.')
  tellOwn(moved, at, one, image)
  for (const mount of listOf(Mounts)) {
    const path = textOf(mount.Destination)
    const old = textOf(mount.Name)
    const place = `${at} ${path ?? '?'}`
    if (mount.Type === 'volume' && path && old) moved.addVolume(place, app, path, old)
    else moved.note('refused', place, 'is a folder of the server.')
  }
}

/**
 * Whether Portreeve runs a container: it says so with labels that it gave it. Images that Portreeve
 * built or made carry some as well, and hand them on to what anybody starts from them.
 */
function isOurs(labels: Fields, image: Fields): boolean {
  const inherited: Fields = isFields(image.Config?.Labels) ? image.Config.Labels : {}
  const given = Object.entries(labels).filter(([name, value]) => own(inherited, name) !== value)
  return own(labels, 'portreeve.managed') === 'true' && given.some(([name]) => name.startsWith('portreeve.'))
}

/** The containers that run on an engine and are not Portreeve's own. Nothing of them is touched. */
export async function fromContainers(requested: AskEngine): Promise<Moved> {
  const moved = createMoved()
  const running = listOf(await requested('/containers/json'))
  for (const { Id } of running) {
    const one = await requested(`/containers/${String(Id)}/json`)
    if (!isFields(one)) continue
    const found = await requested(`/images/${encodeURIComponent(String(one.Image))}/json`).catch(() => ({}))
    const image = isFields(found) ? found : {}
    if (!isOurs(isFields(one.Config?.Labels) ? one.Config.Labels : {}, image)) add(moved, one, image)
  }
  return moved
}
