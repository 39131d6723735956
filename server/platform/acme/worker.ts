import { parentPort } from 'node:worker_threads'
import type { Answer, GuardedClient } from '#server/platform/outbound/client'
import { OutboundError } from '#server/platform/outbound/outbound'
import { AcmeError } from './acme.ts'
import { createAcme } from './client.ts'
import type { Asked, Carried, FromThread, ToThread } from './thread-messages.ts'

/** Entry of the thread that speaks ACME; the server is built with it as a file of its own. */
const port = parentPort!
const emit = (message: FromThread) => port.postMessage(message)
const calls = new Map<number, AbortController>()
const requests = new Map<number, PromiseWithResolvers<Carried>>()
let last_request = 0

const notHere = async () => {
  throw new Error('A body that came from the server is text.')
}
const toAnswer = ({ text, ...rest }: Carried): Answer => ({
  ...rest,
  body: { [Symbol.asyncIterator]: () => ({ next: notHere }) },
  bytes: notHere,
  text: async () => text,
  discard: async () => undefined,
})

/** Hands requests of one call over to the server, which sends them where its policy allows. */
const clientOf = (id: number): GuardedClient => ({
  async send(url, { method, headers, body, timeout_ms } = {}) {
    const request = (last_request += 1)
    const waiting = Promise.withResolvers<Carried>()
    requests.set(request, waiting)
    emit({
      kind: 'carry',
      id,
      request,
      url,
      options: {
        ...(method === undefined ? {} : { method }),
        ...(headers === undefined ? {} : { headers }),
        ...(body === undefined ? {} : { body }),
        ...(timeout_ms === undefined ? {} : { timeout_ms }),
      },
    })
    return toAnswer(await waiting.promise)
  },
  close: async () => undefined,
})

async function act(id: number, { what, account, args }: Asked): Promise<void> {
  const controller = new AbortController()
  calls.set(id, controller)
  const acme = createAcme({ client: clientOf(id) })
  const door = (account ? acme.session(account) : acme) as unknown as Record<
    string,
    (...args: unknown[]) => Promise<unknown>
  >
  try {
    emit({ kind: 'answer', id, result: await door[what]!(...args, controller.signal) })
  } catch (error) {
    const { code, message, retry_after_s } =
      error instanceof AcmeError ? error : new AcmeError('unreachable', (error as Error).message)
    emit({ kind: 'refusal', id, code, message, retry_after_s })
  } finally {
    calls.delete(id)
  }
}

function settle(request: number, act: (waiting: PromiseWithResolvers<Carried>) => void): void {
  const waiting = requests.get(request)
  requests.delete(request)
  if (waiting) act(waiting)
}

port.on('message', (message: ToThread) => {
  if (message.kind === 'ask') void act(message.id, message)
  else if (message.kind === 'abort') calls.get(message.id)?.abort()
  else if (message.kind === 'carried') settle(message.request, ({ resolve }) => resolve(message.answer))
  else settle(message.request, ({ reject }) => reject(new OutboundError(message.code, message.message)))
})
