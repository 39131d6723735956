import { defineNitroPlugin } from 'nitropack/runtime'
import { createSocketOptions } from '#server/http/socket-options'
import { runningServices } from '#server/running'

const TICK_MS = 1000

/** Settings of the WebSocket server, and its clock. */
export default defineNitroPlugin((nitro) => {
  nitro.h3App.options.websocket = createSocketOptions()
  const timer = setInterval(() => runningServices()?.realtime.tick(), TICK_MS)
  timer.unref()
  nitro.hooks.hook('close', () => clearInterval(timer))
})
