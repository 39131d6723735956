import { setTimeout as delay } from 'node:timers/promises'
import type { Change } from '#server/project-file/diff'
import type { Item } from '#server/project-file/items'
import { ApiFault, dataOf } from '../client/api.ts'
import { EXIT } from '../client/exit-codes.ts'
import { followDeployment, requireLive } from '../client/follow-deployment.ts'
import type { Session } from '../client/session.ts'
import { CommandError } from '../terminal.ts'
import type { LiveProject } from './live.ts'
import type { SecretValues } from './secrets.ts'
import { awaitRemoval } from './removal.ts'
import { ACTS, call, sendShared, type Sender } from './send.ts'

export interface ApplyOptions {
  /** Removes what the file does not name, of the lists that it states. */
  prune: boolean
  /** Deploys what was made or changed. */
  deploy: boolean
  /** Waits until it serves. */
  wait: boolean
  is_quiet: boolean
  secrets: SecretValues
  tell(line: string): void
}
const DATABASE_WAIT_MS = 15 * 60_000

async function projectId(session: Session, live: LiveProject): Promise<string> {
  if (live.id !== undefined) return live.id
  return (await dataOf(session.api.POST('/api/projects', { body: { name: live.name } }))).data.id
}

/** Ids of what is there, and of what is made on the way. */
function createIds({ items, destinations, volumes }: LiveProject) {
  const ids = new Map<string, string>()
  const keyOf = (kind: string, name: string) => `${kind} ${name}`
  for (const { kind, name, id } of items) if (id !== undefined) ids.set(keyOf(kind, name), id)
  for (const [name, id] of volumes) ids.set(keyOf('volume', name), id)
  for (const [name, id] of destinations) ids.set(keyOf('storage provider', name), id)
  return {
    add: (kind: string, name: string, id: string) => void ids.set(keyOf(kind, name), id),
    get(kind: string, name: string): string {
      const id = ids.get(keyOf(kind, name))
      if (id === undefined)
        throw new CommandError(
          `There is no ${kind} ${name}${kind === 'storage provider' ? '' : ' in this project'}.`,
          EXIT.NOT_FOUND,
        )
      return id
    },
  }
}

/** The first deployment of an app begins at once; without its variables it would be for nothing. */
async function holdFirst(sender: Sender, item: Item): Promise<void> {
  const path = { params: { path: { id: sender.idOf('app', item.name) } } }
  const id = (await dataOf(sender.session.api.GET('/api/apps/{id}', path))).data.latest_deployment?.id
  if (id === undefined) return
  await call(sender, item, 'POST', `/api/deployments/${id}/cancel`).catch((error: unknown) => {
    // It may have ended meanwhile; what was changed since is deployed in any case.
    if (!(error instanceof CommandError && error.cause instanceof ApiFault && error.cause.status === 409))
      throw error
  })
}

/** Waits for databases that are being made: an app that cannot reach its database fails its first probe. */
async function awaitDatabases(session: Session, ids: readonly string[]): Promise<void> {
  const end = Date.now() + DATABASE_WAIT_MS
  for (const id of ids)
    for (;;) {
      const params = { path: { id }, query: { credentials: 'masked' as const } }
      const { data } = await dataOf(session.api.GET('/api/databases/{id}', { params }))
      if (data.status === 'failed')
        throw new CommandError(
          `The database ${data.name} could not be made: ${data.last_error ?? 'its log tells why.'}`,
          EXIT.FAILED,
        )
      if (data.status !== 'creating') break
      if (Date.now() > end)
        throw new CommandError(`The database ${data.name} is still being made.`, EXIT.FAILED)
      await delay(500)
    }
}

async function deployApp(
  session: Session,
  { name, id, was_held }: { name: string; id: string; was_held: boolean },
  options: ApplyOptions,
): Promise<void> {
  const path = { params: { path: { id } } }
  const app = (await dataOf(session.api.GET('/api/apps/{id}', path))).data
  if (app.source === 'upload' && app.latest_deployment === null)
    return options.tell(`${name} waits for its source: portreeve deploy <folder> --app ${name}`)
  if (app.live_deployment_id !== null && !app.needs_redeploy) return
  // A new app deploys by itself, unless it was held until it had its variables.
  const under_way = ['queued', 'building', 'releasing'].includes(app.latest_deployment?.status ?? '')
  const begun =
    under_way && !was_held
      ? app.latest_deployment!
      : (await dataOf(session.api.POST('/api/apps/{id}/deploy', { ...path, body: {} }))).data
  options.tell(`Deploying ${name}.`)
  if (!options.wait) return
  requireLive(await followDeployment(session, begun.id, { is_quiet: options.is_quiet }))
}

/** Does what a plan says. Whatever fails, what was done before stays, and a second call goes on from there. */
export async function applyChanges(
  session: Session,
  live: LiveProject,
  changes: readonly Change[],
  options: ApplyOptions,
): Promise<void> {
  const ids = createIds(live)
  const project_id = await projectId(session, live)
  const sender: Sender = {
    session,
    project_id,
    secrets: options.secrets,
    idOf: (kind, name) => ids.get(kind, name),
  }
  await sendShared(changes, live.items, options.prune, sender)
  const touched = new Set<string>()
  const held = new Set<string>()
  const databases: string[] = []
  const needs_more = new Set(
    changes
      .filter(({ item }) => /^(variable|database link|mount)$/.test(item.kind))
      .map(({ item }) => item.of!),
  )
  for (const change of changes) {
    const { action, item } = change
    if (item.kind === 'shared variable' || (action === 'extra' && !options.prune)) continue
    const made = await ACTS[item.kind][action](change, sender)
    // A volume goes only once the app that mounted it is gone.
    if (action === 'extra' && options.wait) await awaitRemoval(session, item, options.tell)
    if (action === 'create' && made?.id !== undefined) {
      ids.add(item.kind, item.name, made.id)
      if (item.kind === 'database') databases.push(made.id)
      if (item.kind === 'app' && needs_more.has(item.name)) {
        await holdFirst(sender, item)
        held.add(item.name)
      }
    }
    const app = item.kind === 'app' ? item.name : item.of
    if (app !== undefined && !(item.kind === 'app' && action === 'extra')) touched.add(app)
  }
  if (!options.deploy) return
  await awaitDatabases(session, databases)
  // Whoever uses a shared variable says so itself.
  if (changes.some(({ item }) => item.kind === 'shared variable'))
    for (const { kind, name } of live.items) if (kind === 'app') touched.add(name)
  const removed = changes.filter(({ action, item }) => action === 'extra' && item.kind === 'app')
  for (const name of touched) {
    if (options.prune && removed.some(({ item }) => item.name === name)) continue
    await deployApp(session, { name, id: ids.get('app', name), was_held: held.has(name) }, options)
  }
}
