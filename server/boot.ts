import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { directories } from '#server/directories'
import { type Config, ConfigError, loadConfig } from '#server/kernel/config'
import { systemClock } from '#server/kernel/clock'
import { type Db, openDb } from '#server/kernel/db'
import { lockDirectory, LockedError } from '#server/kernel/lock'
import { createLog, type Log } from '#server/kernel/log'
import { DowngradeError, type Migration, migrate } from '#server/kernel/migrate'
import { createSecrets, loadMasterKey, loadNextKey, type Secrets } from '#server/kernel/secrets'
import type { Adapters, Kernel, Services } from '#server/services'

/** The addon of the database ends the process without a word on older versions of Node. */
const OLDEST_NODE_API = 10
const EDGE_RETRY_MS = 2000
/** Loading what speaks to the engine takes a quarter of a second in one piece; whoever waits for the server to live gets the answer before. */
const FIRST_ANSWERS_MS = 100

export interface Booted { services: Services; /** Ends workers and gives the data directory back; jobs go on at the next start. */ stop(): Promise<void> }
export interface BootOptions { env: Record<string, string | undefined>; migrations: readonly Migration[]; version: string; adapters(kernel: Kernel): Promise<Adapters> }

/** A fault of the surroundings that the operator mends; the message is all they need. */
export class StartError extends Error {}

function checkNode(): void {
  if (Number(process.versions.napi) < OLDEST_NODE_API) throw new StartError(`Node ${process.versions.node} is too old for the database of Portreeve. Start it with npm start, which uses the Node of this project, or use Node 24.`)
}

/** The master key; a database whose secrets it does not open is refused, never started with them lost. */
function openSecrets(config: Config, db: Db, keys: string): Secrets {
  const check = db.sql(`SELECT value FROM meta WHERE key = 'secret_check'`).pluck().get() as string | undefined
  const path = join(keys, 'secret.key')
  const master = loadMasterKey(path, config.secret_key, check !== undefined)
  const next = config.secret_key === undefined ? loadNextKey(path) : undefined
  const secrets = next ? createSecrets(next, master) : createSecrets(master)
  if (check === undefined) db.sql(`INSERT INTO meta (key, value) VALUES ('secret_check', ?)`).run(secrets.seal('portreeve', 'meta/secret_check'))
  else secrets.open(check, 'meta/secret_check')
  return secrets
}

function openKernel(config: Config, log: Log, migrations: readonly Migration[]): Kernel {
  const paths = directories(config.data_directory)
  const db = openDb(join(config.data_directory, 'portreeve.db'))
  const applied = migrate(db, migrations, paths.backups)
  if (applied.length > 0) log.info('Migrated the database', { migrations: applied.join(', ') })
  return { config, db, clock: systemClock, log, secrets: openSecrets(config, db, paths.keys) }
}

/** Brings the edge up with everything that should serve, trying until it works; apps serve on meanwhile from what the edge knows. */
async function bringUpEdge(services: Services, ingress: Adapters['ingress'], stopped: AbortSignal): Promise<void> {
  const { log } = services.kernel
  for (let told = ''; !stopped.aborted; ) {
    try {
      await ingress.ensure(stopped)
      await services.reconciler.applyEdge()
      log.info('The edge serves', { http_port: services.kernel.config.http_port })
      return
    } catch (error) {
      const message = (error as Error).message
      if (message !== told && !stopped.aborted) log.warn('The edge cannot be brought up yet', { reason: message })
      told = message
    }
    await new Promise((resolve) => setTimeout(resolve, EDGE_RETRY_MS).unref())
  }
}

/**
 * Starts everything behind the HTTP server. What can only be mended by the operator is found out first and at once: settings, a
 * second process, a database that does not fit. Only then is the rest of the product loaded, while the server answers that it is
 * alive and starting. Throws StartError with a sentence for what the operator has to mend.
 */
export async function boot(options: BootOptions): Promise<Booted> {
  checkNode()
  let unlock = () => {}
  try {
    const config = loadConfig(options.env)
    const log = createLog(config.log_format, config.log_level)
    mkdirSync(config.data_directory, { recursive: true, mode: 0o700 })
    unlock = lockDirectory(config.data_directory)
    const kernel = openKernel(config, log, options.migrations)
    const adapters = await options.adapters(kernel)
    const { createServices } = await import('#server/services')
    const services = createServices(kernel, adapters, options.version)
    await services.identity.ensureAdministrator()
    // Members are invited into it before anything is created there.
    services.projects.default()
    services.rotation.start()
    services.traffic.start()
    const stopping = new AbortController()
    await delay(FIRST_ANSWERS_MS)
    await services.reconciler.start()
    void bringUpEdge(services, adapters.ingress, stopping.signal).then(() => {
      if (!stopping.signal.aborted) services.jobs.start()
    })
    log.info('Portreeve is ready', { version: options.version, url: services.addresses.public_url(), data: config.data_directory })
    return {
      services,
      async stop() {
        stopping.abort()
        services.realtime.stop()
        await services.jobs.stop()
        await services.reconciler.stop()
        services.deploymentLogs.flush()
        services.traffic.stop()
        await Promise.allSettled([adapters.engine.close(), adapters.ingress.close()])
        kernel.db.close()
        unlock()
      },
    }
  } catch (error) {
    unlock()
    if (error instanceof ConfigError || error instanceof LockedError || error instanceof DowngradeError) throw new StartError(error.message)
    throw error
  }
}
