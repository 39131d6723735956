import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ListenOptions, Server } from 'node:net'
import { StartError } from '#server/start/start-faults'

const CHANNEL = 'tracing:net.server.listen:asyncStart'
const ADDRESS_CODES = ['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EAI_FAIL', 'EINVAL', 'EAFNOSUPPORT']

/** What the operator has to mend when nothing can listen there. */
function sentenceOf(error: NodeJS.ErrnoException, { port, host = '0.0.0.0', path }: ListenOptions): string {
  const where = path ? `the socket ${path}` : `port ${port} on ${host}`
  if (error.code === 'EADDRINUSE')
    return `${where} is already in use. End what listens there, or set PORT to another one.`
  if (error.code === 'EACCES') return `this user may not listen on ${where}. Set PORT to 1024 or above.`
  if (ADDRESS_CODES.includes(error.code ?? ''))
    return `${host} is no address of this machine. Set HOST to one that it has, or leave it out.`
  return `nothing can listen on ${where}: ${error.message}.`
}

/**
 * Resolves once the next server of this process listens; rejects with a StartError when it cannot. Nitro
 * makes its server itself and hands it to nobody, and without a listener of ours its failure would be one
 * line among others while the product starts; Node tells of a server just before it listens. To be called
 * before Nitro does.
 */
export function untilListening(): Promise<void> {
  return new Promise((resolve, reject) => {
    subscribe(CHANNEL, function found(message) {
      const { server, options } = message as { server: Server; options: ListenOptions }
      unsubscribe(CHANNEL, found)
      const failed = (error: NodeJS.ErrnoException) => reject(new StartError(sentenceOf(error, options)))
      server.once('error', failed).once('listening', () => {
        server.off('error', failed)
        resolve()
      })
    })
  })
}
