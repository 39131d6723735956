import { migrations } from '#migrations'
import { defineNitroPlugin } from 'nitropack/runtime'
import { boot, type Booted } from '#server/start/boot'
import { createLog, outliveReaders } from '#server/kernel/log'
import { recordConsole } from '#server/start/record-console'
import { untilListening } from '#server/start/listening'
import { StartError } from '#server/start/start-faults'
import { setRunningServices } from '#server/running'
import pkg from '../../package.json' with { type: 'json' }

// Nitro would listen on 3000; it reads the variable after its plugins have run.
process.env.PORT ||= '9000'

/** Starts the product behind the HTTP server. Requests that come before it is ready are told so. */
export default defineNitroPlugin((nitro) => {
  outliveReaders()
  const is_json = process.env.PORTREEVE_LOG_FORMAT === 'json'
  if (is_json) recordConsole(createLog('json', 'info'))
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
      const why =
        error instanceof StartError
          ? error.message
          : `of a fault of its own, which these lines tell to whoever mends it.\n${(error as Error).stack ?? String(error)}`
      if (is_json) createLog('json', 'error').error(`Portreeve cannot start: ${why}`)
      else process.stderr.write(`Portreeve cannot start: ${why}\n`)
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
