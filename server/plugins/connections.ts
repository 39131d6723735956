import { defineNitroPlugin } from 'nitropack/runtime'
import { limitConnections } from '#server/http/connection-limits'
import { runningServices } from '#server/running'

/**
 * Nitro waits so long for requests under way before it ends, in milliseconds; it reads the variable after its
 * plugins have run.
 */
const SHUTDOWN_MS = '10000'

/**
 * Bounds what clients may take their time for, and says goodbye to WebSockets before the server breaks their
 * connections.
 */
export default defineNitroPlugin(() => {
  process.env.NITRO_SHUTDOWN_TIMEOUT ||= SHUTDOWN_MS
  limitConnections()
  // Registered before Nitro's own: its answer to the signal breaks every idle connection, and a WebSocket
  // counts as one.
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.once(signal, () => runningServices()?.realtime.stop())
})
