import { connect } from 'node:net'

type Answer = 'accepted' | 'refused' | 'none'

/** How a TCP connection is answered; `none` when `signal` aborts first. */
function answerOf(address: string, port: number, timeout_ms: number, signal?: AbortSignal): Promise<Answer> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port, ...(signal ? { signal } : {}) })
    const done = (answer: Answer) => {
      socket.destroy()
      resolve(answer)
    }
    socket
      .setTimeout(timeout_ms, () => done('none'))
      .once('connect', () => done('accepted'))
      .once('error', ({ code }: NodeJS.ErrnoException) => done(code === 'ECONNREFUSED' ? 'refused' : 'none'))
  })
}

/** Whether a TCP connection is accepted; not when `signal` aborts first. */
export async function probeTcp(
  address: string,
  port: number,
  timeout_ms: number,
  signal?: AbortSignal,
): Promise<boolean> {
  return (await answerOf(address, port, timeout_ms, signal)) === 'accepted'
}

/** Whether somebody is there and says that nothing listens; false where nobody answers. */
export async function refusesTcp(
  address: string,
  port: number,
  timeout_ms: number,
  signal?: AbortSignal,
): Promise<boolean> {
  return (await answerOf(address, port, timeout_ms, signal)) === 'refused'
}
