import { cleanWhenQuiet } from '#server/start/cleaning'
import { compileOnceBusy } from '#server/start/compilers'
import { enableCompileCache } from 'node:module'
import { prepareDataDirectory } from '#server/start/data-directory'
import { loadConfig } from '#server/kernel/config'
import { directories } from '#server/kernel/directories'
import { lockDirectory, START_PATIENCE_MS } from '#server/kernel/lock'
import { createLog } from '#server/kernel/log'
import type { Migration } from '#server/kernel/migrate'
import { watchStalls } from '#server/kernel/stalls'
import { unknownSettings } from '#server/kernel/unknown-settings'
import { checkNode, databasePath, openKernel } from '#server/start/open-kernel'
import type { Services } from '#server/modules'
import type { Adapters, Kernel } from '#server/platform/base'
import type { Door } from '#server/platform/door'
import { toStartError } from '#server/start/start-faults'

export interface Booted {
  services: Services
  /** Ends workers and gives the data directory back; jobs go on at the next start. */
  stop(): Promise<void>
}
export interface BootOptions {
  env: Record<string, string | undefined>
  migrations: readonly Migration[]
  version: string
  /** Rejects when the HTTP server cannot listen: then nothing is made and nothing is started. */
  listening: Promise<Door | undefined>
  adapters(kernel: Kernel): Promise<Adapters>
}

/**
 * Starts everything behind the HTTP server. What can only be mended by the operator is found out first and at
 * once: settings, a port that is taken, a folder that cannot be written, a second process, a database that
 * does not fit. Only then is the rest of the product loaded, while the server answers that it is alive and
 * starting. Throws StartError with a sentence for what the operator has to mend.
 */
export async function boot(options: BootOptions): Promise<Booted> {
  checkNode()
  let unlock = () => {}
  let database = 'portreeve.db'
  try {
    const config = loadConfig(options.env)
    database = databasePath(config)
    const log = createLog(config.log_format, config.log_level)
    for (const { name, nearest } of unknownSettings(options.env))
      log.warn(`There is no setting ${name}; it is ignored.${nearest ? ` Is ${nearest} meant?` : ''}`)
    const door = await options.listening
    prepareDataDirectory(config.data_directory)
    // What one start compiled is read at the next; the one-file program has a folder of its own for it.
    enableCompileCache(directories(config.data_directory).compiled)
    unlock = lockDirectory(config.data_directory, START_PATIENCE_MS)
    const kernel = openKernel(config, log, options.migrations)
    const adapters = { ...(await options.adapters(kernel)), ...(door ? { door } : {}) }
    const { createServices } = await import('#server/modules')
    const services = createServices(kernel, adapters, options.version)
    adapters.guard?.start()
    await services.start()
    log.info('Portreeve is ready', {
      version: options.version,
      url: services.addresses.public_url(),
      data: config.data_directory,
    })
    const watches = [watchStalls({ log }), compileOnceBusy(), cleanWhenQuiet({ log })]
    return {
      services,
      async stop() {
        for (const end of watches) end()
        await services.stop()
        await Promise.allSettled([adapters.engine.close(), adapters.ingress.close(), adapters.guard?.stop()])
        kernel.db.close()
        unlock()
      },
    }
  } catch (error) {
    unlock()
    throw toStartError(error, database)
  }
}
