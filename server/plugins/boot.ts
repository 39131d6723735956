import { migrations } from '#migrations'
import { defineNitroPlugin } from 'nitropack/runtime'
import { boot, type Booted } from '#server/start/boot'
import { outliveReaders } from '#server/kernel/log'
import { untilListening } from '#server/start/listening'
import { StartError } from '#server/start/start-faults'
import { setRunningServices } from '#server/running'
import pkg from '../../package.json' with { type: 'json' }

// Nitro would listen on 3000; it reads the variable after its plugins have run.
process.env.PORT ||= '9000'

/** Starts the product behind the HTTP server. Requests that come before it is ready are told so. */
export default defineNitroPlugin((nitro) => {
  outliveReaders()
  let booted: Booted | undefined
  const booting = boot({
    env: process.env,
    migrations,
    version: pkg.version,
    listening: untilListening(),
    adapters: async (kernel) => (await import('#server/start/adapters')).createAdapters(kernel),
  }).then(
    (started) => {
      booted = started
      setRunningServices(started.services)
    },
    (error: unknown) => {
      process.stderr.write(
        `Portreeve cannot start: ${error instanceof StartError ? error.message : `of a fault of its own, which these lines tell to whoever mends it.\n${(error as Error).stack ?? String(error)}`}\n`,
      )
      process.exit(1)
    },
  )
  nitro.hooks.hook('request', (event) => {
    event.context.services = booted?.services
  })
  nitro.hooks.hook('close', async () => {
    await booting
    setRunningServices(undefined)
    await booted?.stop()
  })
})
