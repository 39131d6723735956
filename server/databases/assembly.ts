import type { Addresses } from '#server/addresses/service'
import type { AppsDomain } from '#server/apps/contract'
import type { DeploymentsDomain } from '#server/deployments/contract'
import { notFound } from '#server/kernel/errors'
import { writeInPieces } from '#server/kernel/write-in-pieces'
import { createLayerWatch } from '#server/platform/engine/layer-watch'
import type { Base } from '#server/platform/base'
import type { Projects } from '#server/projects/service'
import type { DatabaseContext, DatabasePorts, FinalBackup, LogArchive } from './context.ts'
import { ENGINES } from './engines.ts'
import { dumpStream, outputOf, requireSuccess } from './commands.ts'
import type { DatabaseEngine } from './engine.ts'
import type { DatabaseInstance } from './instance.ts'
import { lifecycleJobs, type Workroom } from './lifecycle.ts'
import { createLinks } from './links.ts'
import { createLive } from './live.ts'
import { databaseMachine } from './machine.ts'
import { databaseOwners } from './owners.ts'
import { createReplacement, previousJobs, requireRoomToKeep, upgradeJob } from './replacement.ts'
import { createDatabaseRepository } from './repository.ts'
import { rotationJob } from './rotation.ts'
import { createServers } from './servers.ts'
import { createDatabaseService } from './service.ts'
import { countObjects, createSpares } from './spares.ts'
import { createVault } from './vault.ts'
import { lineOf } from './versions.ts'
import { factsOf, variablesOf } from './view.ts'

export interface DatabaseNeeds {
  addresses: Pick<Addresses, 'public_url'>
  apps: Pick<AppsDomain, 'find' | 'sources'>
  env: { hasVariable(app_id: string, key: string): boolean }
  deployments: Pick<
    DeploymentsDomain,
    'requireEngine' | 'refresh' | 'ended' | 'holds' | 'keepRunning' | 'replaceCredentials'
  >
  projects: Pick<Projects, 'requireQuota' | 'requireStorage' | 'requireShare' | 'shareBefore'>
}
/** What other modules add to databases once they are made. */
interface Plugs {
  final_backup?: FinalBackup
  log_archive?: LogArchive
}

function databasePorts(use: DatabaseNeeds, plugs: Plugs): DatabasePorts {
  return {
    app: (id) => use.apps.find(id),
    hasVariable: (app_id, key) => use.env.hasVariable(app_id, key),
    requireEngine: () => use.deployments.requireEngine(),
    requireQuota: (project_id) => use.projects.requireQuota(project_id, 'database'),
    requireStorage: (...given) => use.projects.requireStorage(...given),
    requireShare: (...given) => use.projects.requireShare(...given),
    share: (project_id) => use.projects.shareBefore(project_id),
    public_host: () => new URL(use.addresses.public_url()).hostname,
    appsHolding: (project_id, text) =>
      use.apps
        .sources(project_id)
        .map(({ id }) => id)
        .filter((id) => use.deployments.holds(id, text)),
    refreshApp: (app_id) => use.deployments.refresh(app_id),
    async replaceCredentials(project_id, from, to) {
      for (const { id } of use.apps.sources(project_id))
        await use.deployments.replaceCredentials(id, from, to)
    },
    refreshed: (deployment_id) => use.deployments.ended(deployment_id),
    finalBackup: () => plugs.final_backup,
    logArchive: () => plugs.log_archive,
  }
}

/** Rows, and what is written together with each of their changes. */
function createContext(base: Base, ports: DatabasePorts): DatabaseContext {
  const { db, clock, events, secrets } = base
  const repository = createDatabaseRepository(db)
  const get: DatabaseContext['get'] = (id) => {
    const row = repository.find(id)
    if (!row) throw notFound('database')
    return row
  }
  const note: DatabaseContext['note'] = (row, type, payload = {}, actor) =>
    events.append({
      type,
      project_id: row.project_id,
      actor_id: actor?.user_id || null,
      payload: { database_id: row.id, name: row.name, status: row.status, ...payload },
    })
  const change: DatabaseContext['change'] = (id, columns) => {
    repository.update(id, columns, clock.iso())
    return get(id)
  }
  return {
    ...base,
    repository,
    vault: createVault(secrets),
    ports,
    get,
    change,
    note,
    advance: (id, event, columns = {}) =>
      db.tx(() => {
        const row = get(id)
        const next = databaseMachine.next(row.status, event)
        if (next !== row.status) repository.setStatus(id, row.status, next, clock.iso())
        if (Object.keys(columns).length > 0) change(id, columns)
        if (next !== row.status || columns.last_error)
          note(get(id), `database.${next}`, { error: columns.last_error ?? null })
      }),
  }
}

/** Databases: servers of seven engines, links to apps, credentials, upgrades. */
export function createDatabasesDomain(base: Base, use: DatabaseNeeds) {
  const plugs: Plugs = {}
  const context = createContext(base, databasePorts(use, plugs))
  const { repository, vault, get, advance } = context
  const servers = createServers(base)
  const live = createLive(context, servers)
  const spares = createSpares(context, servers)
  const room: Workroom = { ...context, servers, live, spares }
  const replacement = createReplacement(room)
  const requireRestorable = (id: string): void => {
    const row = get(id)
    databaseMachine.next(row.status, 'restore')
    requireRoomToKeep(context.ports, row)
  }
  const links = createLinks({ ...context, audit: base.audit })
  for (const job of [
    ...lifecycleJobs(room),
    rotationJob(room),
    upgradeJob(room, replacement),
    ...previousJobs(room, replacement),
  ])
    base.jobs.define(job)
  const owners = databaseOwners(context, base.jobs, { live, spares })
  use.deployments.keepRunning(owners)
  /** Ends the server of a database that runs and that no job is about, and says why. */
  async function stopBecause(id: string, error: string): Promise<'stopped' | 'idle' | 'busy'> {
    if (owners.busy(id)) return 'busy'
    const row = repository.find(id)
    if (row?.status !== 'running') return 'idle'
    advance(id, 'fail', { last_error: error })
    await servers.stop(row.volume_id)
    return 'stopped'
  }
  /** Whoever has its password may write files of the server beside its data. */
  const layers = createLayerWatch({
    ...base,
    limit_bytes: base.config.layer_bytes,
    desired: owners.desired,
    busy: owners.busy,
    makers: ({ release_id }) => [release_id],
    sentence: (_, wrote, most) =>
      `The server wrote ${wrote} beside its data, and ${most} is the most, so the database was stopped. Those files are gone with it; start it again.`,
    stop: async ({ id }, { error }) => void (await stopBecause(id, error)),
  })

  return {
    ...createDatabaseService({ ...context, audit: base.audit, jobs: base.jobs }),
    engines: () => ENGINES.map(factsOf),
    links,
    /** Passwords that its log must not show. */
    secretsOf(id: string): readonly string[] {
      const row = repository.find(id)
      return row ? vault.readable(row) : []
    },
    find: repository.find,
    projectOf: (id: string) => repository.find(id)?.project_id,
    /** What `${{ <name>.KEY }}` stands for in a project; undefined when it has no database of that name. */
    connectionVariables(project_id: string, name: string): Record<string, string> | undefined {
      const row = repository.findByName(project_id, name)
      return row && row.status !== 'deleting' ? variablesOf(row, vault) : undefined
    },
    /** Those whose log is archived. */
    archived: () => repository.all().filter(({ archive_days }) => archive_days !== null),
    inProject: (project_id: string) => repository.inProject(project_id),
    isNameTaken: (project_id: string, name: string): boolean =>
      repository.findByName(project_id, name) !== undefined,
    linkedVariables: links.variables,
    /** Databases that an app is linked to, with the variable that names each. */
    linkedTo: links.linkedTo,
    variables(id: string): Record<string, string> | undefined {
      const row = repository.find(id)
      return row && row.status !== 'deleting' ? variablesOf(row, vault) : undefined
    },
    /** Servers for trying and restoring dumps. */
    spares,
    /** What a spare is made of that holds what this database holds, with its credentials. */
    spareSpec(id: string, volume_id: string) {
      return { ...live.spareOf(get(id)), volume_id }
    },
    /**
     * The same for files of a server of another version: they are read by the release line that
     * wrote them only.
     */
    async spareSpecOf(id: string, volume_id: string, version: string, signal: AbortSignal) {
      const spec = { ...live.spareOf(get(id)), volume_id }
      if (lineOf(spec.engine, version) === lineOf(spec.engine, spec.version)) return spec
      return { ...spec, version, image_id: await live.imageOf(spec.engine, version, false, signal) }
    },
    imageOf: live.imageOf,
    /** A whole, consistent copy as it is written; it breaks off where the server does. */
    dump: dumpStream,
    /** What a command prints in a server, as it prints it; whole or broken off. */
    output: outputOf,
    /** Runs a command in a server that must succeed; answers what it printed. */
    ask: requireSuccess,
    /** What is in a server, object by object. */
    count: countObjects,
    engineNamed: (name: string): DatabaseEngine | undefined => ENGINES.find((one) => one.name === name),
    /** The live server, if it runs. */
    instance: (id: string): Promise<DatabaseInstance | undefined> => live.instance(get(id)),
    /** The live server once it answers; one that crashed is waited for. */
    answering: (id: string, signal: AbortSignal): Promise<DatabaseInstance | undefined> =>
      live.answering(get(id), signal),
    bringUp: live.bringUp,
    replace: replacement.take,
    /** Throws 409 when no restore in its place can begin: in this state, or with so much kept already. */
    requireRestorable,
    /** Begins a restore in its place, in the current transaction. */
    beginRestore(id: string): void {
      requireRestorable(id)
      advance(id, 'restore')
    },
    /** Lets the data from before a replacement go, if they are the previous ones. */
    forgetPrevious: replacement.confirm,
    forgetVanished: replacement.forgetVanished,
    /** Moves the status in the current transaction, as a restore begins and ends. */
    advance,
    plug(added: Plugs): void {
      Object.assign(plugs, added)
    },
    /** Images of all servers, stopped ones too. */
    neededImages: (): string[] => repository.all().flatMap(({ image_id }) => image_id ?? []),
    /** All, with the bytes that each held when it was measured last. */
    stored: repository.stored,
    stopBecause,
    layers,
    /** Notes what each volume takes on the disk. */
    async measure(measured?: ReadonlyMap<string, { used_bytes: number }>): Promise<void> {
      const rows = repository.measured()
      if (rows.length === 0) return
      const usage = measured ?? (await base.engine.volumeUsage())
      const grown = rows.filter(({ volume_id, used_bytes }) => {
        const size = usage.get(volume_id)?.used_bytes
        return size !== undefined && size !== used_bytes
      })
      await writeInPieces(base.db, grown, ({ volume_id }) =>
        repository.setUsedBytes(volume_id, usage.get(volume_id)!.used_bytes),
      )
    },
  }
}
export type Databases = ReturnType<typeof createDatabasesDomain>
