import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { threadFile } from '#server/kernel/thread-file'
import type { GuardedClient } from '#server/platform/outbound/client'
import { OutboundError } from '#server/platform/outbound/outbound'
import { type Acme, type AcmeAccount, AcmeError, type AcmeSession } from './acme.ts'
import { createAcme, createKey } from './client.ts'
import type { Asked, FromThread, ToThread } from './thread-messages.ts'

/** File of the thread, beside the built server. */
export const ACME_WORKER = 'acme.mjs'
/** A thread that nobody asked anything for so long ends and gives its memory back. */
const IDLE_MS = 60_000

interface Call {
  resolve(result: unknown): void
  reject(error: AcmeError): void
  signal: AbortSignal | undefined
}

/** Asks a thread that is started by the first call and ends when there is none. */
function createThread(client: GuardedClient, file: string, idle_ms: number) {
  const calls = new Map<number, Call>()
  let worker: Worker | undefined
  let idle: NodeJS.Timeout | undefined
  let last_id = 0

  function ended(of: Worker, cause?: unknown): void {
    if (worker !== of) return
    worker = undefined
    for (const { reject } of calls.values())
      reject(
        new AcmeError('unreachable', 'The thread that speaks to certificate authorities ended.', { cause }),
      )
    calls.clear()
  }
  async function carry(
    to: Worker,
    { id, request, url, options }: Extract<FromThread, { kind: 'carry' }>,
  ): Promise<void> {
    const emit = (message: ToThread) => to.postMessage(message)
    const signal = calls.get(id)?.signal
    try {
      const answer = await client.send(url, { ...options, ...(signal ? { signal } : {}) })
      const { status, headers } = answer
      const text = await answer.text()
      emit({ kind: 'carried', request, answer: { status, headers, url: answer.url, text } })
    } catch (error) {
      const { code, message } =
        error instanceof OutboundError ? error : new OutboundError('failed', (error as Error).message)
      emit({ kind: 'lost', request, code, message })
    }
  }
  function hear(from: Worker, message: FromThread): void {
    if (message.kind === 'carry') return void carry(from, message)
    const call = calls.get(message.id)
    calls.delete(message.id)
    if (message.kind === 'answer') return call?.resolve(message.result)
    const { code, message: text, retry_after_s } = message
    return call?.reject(new AcmeError(code, text, { retry_after_s }))
  }
  function start(): Worker {
    const started = new Worker(file)
    started.on('message', (message: FromThread) => hear(started, message))
    started.once('error', (error) => ended(started, error))
    started.once('exit', () => ended(started))
    return started
  }
  function rest(): void {
    if (calls.size > 0 || !worker) return
    const resting = worker
    resting.unref()
    idle = setTimeout(() => {
      worker = undefined
      void resting.terminate()
    }, idle_ms).unref()
  }

  return async (asked: Asked, signal?: AbortSignal): Promise<unknown> => {
    clearTimeout(idle)
    const to = (worker ??= start())
    to.ref()
    const id = (last_id += 1)
    const abort = () => to.postMessage({ kind: 'abort', id } satisfies ToThread)
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    calls.set(id, { resolve, reject, signal })
    to.postMessage({ kind: 'ask', id, ...asked } satisfies ToThread)
    if (signal?.aborted) abort()
    signal?.addEventListener('abort', abort, { once: true })
    try {
      return await promise
    } finally {
      signal?.removeEventListener('abort', abort)
      rest()
    }
  }
}

export interface AcmeApartOptions {
  /** Sends what the thread asks for; the thread itself connects to nobody. */
  client: GuardedClient
  file?: string
  /** How long a thread stays that has nothing to do. */
  idle_ms?: number
}

/**
 * Speaks ACME in a thread of its own: loading what it takes is a third of a second, in which nobody else would
 * be answered. From sources, where there is no built file of the thread, it is done here.
 */
export function createAcmeApart(options: AcmeApartOptions): Acme {
  const { client, file = threadFile(ACME_WORKER), idle_ms = IDLE_MS } = options
  if (!existsSync(file)) return createAcme({ client })
  const requested = createThread(client, file, idle_ms)

  function session(account: AcmeAccount): AcmeSession {
    let { key } = account
    const call = (what: keyof AcmeSession, args: unknown[], signal?: AbortSignal): Promise<any> =>
      requested({ what, args, account: { ...account, key } }, signal)
    return {
      order: (names, signal) => call('order', [names], signal),
      read: (url, signal) => call('read', [url], signal),
      accept: (challenge, signal) => call('accept', [challenge], signal),
      settle: (url, desired, signal) => call('settle', [url, desired], signal),
      finalise: (url, certificate_key, names, signal) =>
        call('finalise', [url, certificate_key, names], signal),
      download: (url, signal) => call('download', [url], signal),
      revoke: (certificate, signal) => call('revoke', [certificate], signal),
      async rollKey(next, signal) {
        await call('rollKey', [next], signal)
        key = next
      },
    }
  }
  return {
    createKey,
    createRequest: (key, names) =>
      requested({ what: 'createRequest', args: [key, [...names]] }) as Promise<string>,
    register: (account, signal) =>
      requested({ what: 'register', args: [account] }, signal) as Promise<{ account_url: string }>,
    session,
  }
}
