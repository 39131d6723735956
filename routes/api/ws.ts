import { defineWebSocketHandler } from 'h3'
import { createWebSocketHooks } from '#server/http/websocket'
import { runningServices } from '#server/running'

/** The one WebSocket of the product: events, logs and terminals as they happen. */
export default defineWebSocketHandler(
  createWebSocketHooks(() => {
    const services = runningServices()
    return (
      services && {
        realtime: services.realtime,
        http: services.http,
        authenticate: (credentials, facts) => services.identity.authenticateUpgrade(credentials, facts),
      }
    )
  }),
)
