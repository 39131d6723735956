import { own } from '#server/kernel/own'
import { connect, type Socket } from 'node:net'
import { OutboundError, type CheckedAddress, type Dial, type OutboundPolicy } from './outbound.ts'

const REASONS: Record<string, [code: 'refused' | 'unreachable', text: string]> = {
  ECONNREFUSED: ['refused', 'refused the connection'],
  EHOSTUNREACH: ['unreachable', 'cannot be reached'],
  ENETUNREACH: ['unreachable', 'cannot be reached'],
  ECONNRESET: ['unreachable', 'closed the connection'],
}

/** Opens one connection to an address literal; no name is resolved on the way. */
function open(
  { address, family }: CheckedAddress,
  port: number,
  host: string,
  timeout_ms: number,
  signal?: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, family })
    const fail = (error: Error): void => {
      release()
      socket.destroy()
      reject(error)
    }
    const timer = setTimeout(
      () =>
        fail(new OutboundError('timeout', `${host} did not accept a connection on port ${port} in time.`)),
      timeout_ms,
    )
    const onAbort = (): void => fail(new OutboundError('aborted', 'The request was cancelled.'))
    const release = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    socket.once('error', (error: NodeJS.ErrnoException) => {
      const [code, text] = own(REASONS, error.code ?? '') ?? ['unreachable', 'cannot be reached']
      fail(new OutboundError(code, `${host} ${text} on port ${port}.`, { cause: error }))
    })
    socket.once('connect', () => {
      release()
      socket.removeAllListeners('error')
      // Its new owner listens too; this one keeps an error in between from ending the process.
      socket.on('error', () => {})
      resolve(socket)
    })
    if (signal?.aborted) onAbort()
  })
}

/** Whoever owns a name gives it as many addresses as they like; each that does not answer takes its time. */
const MOST_TRIED = 8

async function openFirst(
  addresses: readonly CheckedAddress[],
  port: number,
  host: string,
  timeout_ms: number,
  signal: AbortSignal,
): Promise<Socket> {
  const each_ms = Math.max(1000, Math.floor(timeout_ms / addresses.length))
  let last: unknown
  for (const address of addresses) {
    try {
      return await open(address, port, host, each_ms, signal)
    } catch (error) {
      last = error
      if (signal.aborted) break
    }
  }
  throw last
}

/**
 * Connects to the first address that answers; all of them passed the policy, and the name is resolved exactly
 * once. The time is that of everything together: whoever owns a name decides how long its name server takes.
 */
export function createDial(policy: Pick<OutboundPolicy, 'resolve'>): Dial {
  return async (host, port, { timeout_ms = 10_000, signal } = {}) => {
    const late = new AbortController()
    let step = `DNS did not answer for ${host} in time.`
    const timer = setTimeout(() => late.abort(), timeout_ms)
    const ending = signal ? AbortSignal.any([signal, late.signal]) : late.signal
    try {
      const addresses = (await policy.resolve(host, port, ending)).slice(0, MOST_TRIED)
      step = `${host} did not accept a connection on port ${port} in time.`
      return await openFirst(addresses, port, host, timeout_ms, ending)
    } catch (error) {
      if (late.signal.aborted && !signal?.aborted) throw new OutboundError('timeout', step, { cause: error })
      throw error
    } finally {
      clearTimeout(timer)
    }
  }
}
