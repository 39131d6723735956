import { setTimeout as delay } from 'node:timers/promises'
import { sizeOf } from '../../sizes.ts'
import { CommandError, createProgress } from '../../terminal.ts'
import { ApiFault, dataOf, type Schemas } from '../api.ts'
import { all } from '../apps.ts'
import { defineClientVerb } from '../client-verb.ts'
import { EXIT } from '../exit-codes.ts'
import { port } from '../option-values.ts'
import { ago, facts, paint, show, status, table } from '../output.ts'
import { canAsk, prompt, requireTyped } from '../prompt.ts'
import { type ClientOptions, openSession, type Session } from '../session.ts'

type Node = Schemas['Node']

const ASK_MS = 1_000
/** The key that `nodes key` makes, and `nodes add` logs in with. */
const KEY_NAME = 'servers'

const nodesOf = ({ api }: Session) =>
  all((query) => dataOf(api.GET('/api/nodes', { params: { query: { ...query, sort: 'created_at' } } })))

async function findNode(session: Session, name: string): Promise<Node> {
  const found = (await nodesOf(session)).find((one) => one.id === name || one.name === name)
  if (!found) throw new CommandError(`There is no server ${name}. See: portreeve nodes`, EXIT.NOT_FOUND)
  return found
}

/** What it does now: a server that is being emptied answers like any other. */
const stateOf = ({ state, availability }: Node): string =>
  state === 'ready' && availability === 'drain' ? paint('yellow', 'drained') : status(state)
const share = (used: number, total: number): string =>
  total === 0 ? '' : `${sizeOf(used)} of ${sizeOf(total)}`

async function list(options: ClientOptions): Promise<void> {
  const found = await nodesOf(await openSession(options))
  show(options, found, () =>
    table(
      ['name', 'state', 'address', 'instances', 'memory'],
      found.map((one) => [
        one.name,
        stateOf(one),
        one.address,
        String(one.use.instances ?? ''),
        share(one.use.memory_bytes, one.capacity.memory_bytes),
      ]),
    ),
  )
}

async function showOne(name: string, options: ClientOptions): Promise<void> {
  const session = await openSession(options)
  const node = await findNode(session, name)
  const path = { params: { path: { id: node.id } } }
  const { data: health } = await dataOf(session.api.GET('/api/nodes/{id}/health', path))
  const wrong = Object.values(health.checks).flatMap(({ ok, message }) => (ok === false ? [message] : []))
  show(options, { ...node, health }, () =>
    facts([
      ['name', paint('bold', node.name)],
      ['state', stateOf(node)],
      ['role', node.role],
      ['address', node.address],
      ['processors', String(node.capacity.cpus)],
      ['memory', share(node.use.memory_bytes, node.capacity.memory_bytes)],
      ['disk', share(node.use.disk_bytes, node.capacity.disk_bytes)],
      ['instances', node.use.instances === null ? null : String(node.use.instances)],
      ['engine', node.engine.version],
      ['last seen', node.last_seen_at === null ? null : ago(node.last_seen_at)],
      ['error', node.last_error === null ? null : paint('red', node.last_error)],
      ['wrong', wrong.length === 0 ? null : paint('red', wrong.join(' '))],
      ['id', node.id],
    ]),
  )
}

/** An SSH key by id or name; undefined where there is none with a private half. */
async function findKey({ api }: Session, name: string) {
  const keys = await all((query) => dataOf(api.GET('/api/ssh-keys', { params: { query } })))
  const fitting = keys.filter((one) => one.has_private_key && (one.id === name || one.name === name))
  if (fitting.length > 1)
    throw new CommandError(`Several projects have an SSH key ${name}. Name it by its id.`, EXIT.USAGE)
  return fitting[0]
}

async function key(options: ClientOptions): Promise<void> {
  const session = await openSession(options)
  const found =
    (await findKey(session, KEY_NAME)) ??
    (await dataOf(session.api.POST('/api/ssh-keys/generate', { body: { name: KEY_NAME } }))).data
  show(options, found, () => found.public_key)
}

interface AddOptions extends ClientOptions {
  key: string
  name?: string
  user: string
  port: number
  hostKey?: string
}
/** Whether the key that a server shows is its own. */
async function approved(fault: unknown): Promise<string> {
  const details = fault instanceof ApiFault ? fault.details : []
  const shown = details.find(({ path }) => path === 'host_key')?.message
  if (!shown?.startsWith('SHA256:')) throw fault
  if (!canAsk())
    throw new CommandError(
      `The server shows the key ${shown}. Compare it, then say --host-key.`,
      EXIT.REFUSED,
    )
  const question = [
    `The server shows the key ${shown}.`,
    'Its own is what this prints there: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub',
    'Type yes if they are the same: ',
  ].join('\n')
  if ((await prompt(question)) !== 'yes') throw new CommandError('The server was not added.', EXIT.USAGE)
  return shown
}

/** Waits until a server has joined; throws with the reason where it could not. */
async function joined({ api }: Session, { id, name }: Node): Promise<Node> {
  const progress = createProgress(process.stderr)
  for (;;) {
    progress.show(`${name} is joining. It may need its container engine first.`)
    const { data } = await dataOf(api.GET('/api/nodes/{id}', { params: { path: { id } } }))
    if (data.state !== 'joining') progress.end()
    if (data.state === 'failed')
      throw new CommandError(`The server could not be joined: ${data.last_error}`, EXIT.FAILED)
    if (data.state !== 'joining') return data
    await delay(ASK_MS)
  }
}

async function add(address: string, options: AddOptions): Promise<void> {
  const session = await openSession(options)
  const ssh_key = await findKey(session, options.key)
  if (!ssh_key)
    throw new CommandError(
      `There is no SSH key ${options.key} with a private half. Make one: portreeve nodes key`,
      EXIT.NOT_FOUND,
    )
  const ask = (host_key: string | undefined) => {
    const body = {
      ...{ address, user: options.user, port: options.port, ssh_key_id: ssh_key.id },
      ...(options.name === undefined ? {} : { name: options.name }),
      ...(host_key === undefined ? {} : { host_key }),
    }
    return dataOf(session.api.POST('/api/nodes', { body }))
  }
  const { data } = await ask(options.hostKey).catch(async (fault: unknown) => {
    if (options.hostKey !== undefined) throw fault
    return ask(await approved(fault))
  })
  const node = await joined(session, data)
  show(options, node, () => `${node.name} has joined, and takes work.`)
}

const turn =
  (action: 'drain' | 'activate', done: (name: string) => string) =>
  async (name: string, options: ClientOptions): Promise<void> => {
    const session = await openSession(options)
    const { id } = await findNode(session, name)
    const { data } = await dataOf(session.api.POST(`/api/nodes/{id}/${action}`, { params: { path: { id } } }))
    show(options, data, () => done(data.name))
  }

async function remove(
  name: string,
  options: ClientOptions & { force?: boolean; yes?: boolean },
): Promise<void> {
  const session = await openSession(options)
  const node = await findNode(session, name)
  const warning = `Moves what ${node.name} runs elsewhere and removes it.`
  await requireTyped(node.name, { yes: options.yes, to: 'remove it', warning, done: 'removed' })
  const params = { path: { id: node.id }, query: options.force ? { force: true } : {} }
  const { data } = await dataOf(session.api.DELETE('/api/nodes/{id}', { params }))
  show(options, data, () => `Removing ${node.name}, once what it runs is elsewhere. See: portreeve nodes`)
}

export default defineClientVerb((verb) => {
  const name = ['<node>', 'name or id'] as const
  verb.description('Servers that run apps.')
  verb.command('list', { isDefault: true }).summary('list the servers').action(list)
  verb
    .command('show')
    .summary('what a server has, and how it is')
    .argument(...name)
    .action(showOne)
  verb
    .command('key')
    .summary('print the line for authorized_keys of a server that is to be added')
    .action(key)
  verb
    .command('add')
    .summary('add a server over SSH')
    .argument('<address>', 'IP address or host name')
    .option('--key <key>', 'SSH key to log in with, by name or id', KEY_NAME)
    .option('--user <name>', 'root, or who becomes root by sudo without a password', 'root')
    .option('--port <number>', 'of SSH', port, 22)
    .option('--name <name>', 'what to call it (default: its host name)')
    .option('--host-key <fingerprint>', 'key of the server, SHA256:… (default: asks)')
    .action(add)
  verb
    .command('drain')
    .summary('move what a server runs elsewhere, without a gap')
    .argument(...name)
    .action(turn('drain', (node) => `${node} takes no more work, and what it runs moves elsewhere.`))
  verb
    .command('activate')
    .summary('have a server take work again')
    .argument(...name)
    .action(turn('activate', (node) => `${node} takes work again.`))
  verb
    .command('remove')
    .summary('empty a server and remove it')
    .argument(...name)
    .option('--force', 'also one that does not answer, and what is pinned to it')
    .option('-y, --yes', 'do not ask')
    .action(remove)
})
