import type { IncomingMessage } from 'node:http'
import type { AppOptions } from 'h3'
import { notFound } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import { createLog } from '#server/kernel/log'
import { MAX_MESSAGE_BYTES } from '#server/realtime/realtime'
import { requireOneHost } from './request.ts'
import { refusal } from './websocket.ts'

/**
 * Mends what the WebSocket library does by default: it accepts an upgrade on any path, takes
 * messages of 100 MiB, and throws where nobody catches it when a client that is being refused goes
 * away.
 */
export function createSocketOptions(): NonNullable<AppOptions['websocket']> {
  const options = {
    serverOptions: { maxPayload: MAX_MESSAGE_BYTES },
    hooks: {
      upgrade(request: { _req?: IncomingMessage }) {
        request._req?.socket.on('error', () => undefined)
        try {
          if (request._req) requireOneHost(request._req)
          if ((request._req?.url ?? '').split('?')[0] !== '/api/ws') throw notFound('path')
          return undefined
        } catch (error) {
          return refusal(error, newId('req'), createLog('text', 'error'))
        }
      },
    },
  }
  return options as unknown as NonNullable<AppOptions['websocket']>
}
