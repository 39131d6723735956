const TRIES = 3
const FIRST_WAIT_MS = 400

/** Names one request, for the server to know it by when it comes again. Made of random bytes, as plain HTTP has no UUIDs. */
export const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join(
    '',
  )

const wait = (tries: number) => {
  const ceiling = FIRST_WAIT_MS * 3 ** tries
  return new Promise<void>((done) => setTimeout(done, ceiling / 2 + (Math.random() * ceiling) / 2))
}
/** The server is still at work on the first of several: a conflict that ends by itself. */
const isAtWork = ({ status, headers }: Response) => status === 409 && headers.has('retry-after')

/**
 * Asks, and asks again when it got lost on the way, as while a computer goes from one network to another. Only for
 * what may be carried out twice.
 */
export async function askAgain(ask: () => Promise<Response>, signal?: AbortSignal): Promise<Response> {
  for (let tries = 0; ; tries += 1) {
    const is_last = tries === TRIES - 1
    try {
      const answer = await ask()
      if (is_last || !isAtWork(answer)) return answer
    } catch (error) {
      if (is_last || signal?.aborted) throw error
    }
    await wait(tries)
  }
}

/**
 * Sends a request; again when it bears a key, by which the server knows that it carried it out already: then the
 * answer is that of the first.
 */
export const send = (request: Request): Promise<Response> =>
  request.headers.has('Idempotency-Key')
    ? askAgain(() => fetch(request.clone()), request.signal)
    : fetch(request)
