import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { AddressInfo, ListenOptions, Server } from 'node:net'
import type { Door } from '#server/platform/door'
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

const listen = (server: Server, options: ListenOptions): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject).once('listening', resolve)
    const settled = () => server.off('error', reject).off('listening', resolve)
    server.once('error', settled).once('listening', settled)
    server.listen(options)
  })

/** Nothing is bound twice: the server lets go first, and stays where it was when the other place is taken. */
function createDoor(server: Server, first: ListenOptions): Door {
  const { port } = server.address() as AddressInfo
  const places = { wide: { ...first, port }, narrow: { port, host: '127.0.0.1' } }
  let is_narrow = false
  let turn: Promise<void> = Promise.resolve()
  const move = async (narrow: boolean) => {
    // One that stopped listening is about to end.
    if (narrow === is_narrow || !server.listening) return
    server.close()
    try {
      await listen(server, narrow ? places.narrow : places.wide)
    } catch (error) {
      await listen(server, narrow ? places.wide : places.narrow)
      throw error
    }
    is_narrow = narrow
  }
  return {
    get is_narrow() {
      return is_narrow
    },
    set(narrow) {
      const moved = turn.then(() => move(narrow))
      turn = moved.catch(() => undefined)
      return moved
    },
  }
}

/**
 * Resolves with its door once the next server of this process listens; rejects with a StartError when it cannot. Nitro
 * makes its server itself and hands it to nobody, and without a listener of ours its failure would be one
 * line among others while the product starts; Node tells of a server just before it listens. To be called
 * before Nitro does.
 */
export function untilListening(): Promise<Door | undefined> {
  return new Promise((resolve, reject) => {
    subscribe(CHANNEL, function found(message) {
      const { server, options } = message as { server: Server; options: ListenOptions }
      unsubscribe(CHANNEL, found)
      const failed = (error: NodeJS.ErrnoException) => reject(new StartError(sentenceOf(error, options)))
      server.once('error', failed).once('listening', () => {
        server.off('error', failed)
        // A socket in a folder is reached by who may open it, wherever names lead.
        resolve(options.path === undefined ? createDoor(server, options) : undefined)
      })
    })
  })
}
