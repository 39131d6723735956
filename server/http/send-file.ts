import type { Readable } from 'node:stream'
import type { H3Event } from 'h3'
import { ApiError } from '#server/kernel/errors'
import type { Log } from '#server/kernel/log'
import type { AnswerShare } from './untaken.ts'

/** What a handler says of a file, which is wrong of the error that is answered in its place. */
const OF_THE_FILE = ['Accept-Ranges', 'Content-Disposition', 'Content-Length', 'Content-Range', 'ETag']

/**
 * What a file on its way holds in memory, in pieces at each of the places that it passes. It is no matter of its size:
 * its reader may take as long for each byte as there is patience.
 */
const HELD_BYTES = 256 * 1024

/**
 * Sends a stream as the body. The HTTP library would neither close the stream when the client goes away, so that
 * the file or connection behind it stays open for good, nor end the connection when the stream fails midway.
 * Rejects while nothing was sent yet: then there is an error to answer.
 * @param share what its reader may hold: one who opens hundreds and reads none has enough.
 */
export function sendFile(
  event: H3Event,
  stream: Readable,
  share: Pick<AnswerShare, 'hold'>,
  log: Log,
): Promise<null> {
  const { res } = event.node
  const withoutFile = (): void => OF_THE_FILE.forEach((name) => res.removeHeader(name))
  try {
    share.hold(HELD_BYTES)
  } catch (error) {
    stream.on('error', () => undefined).destroy()
    withoutFile()
    throw error
  }
  return new Promise((resolve, reject) => {
    const end = () => {
      stream.destroy()
      resolve(null)
    }
    stream.once('error', (error) => {
      if (res.headersSent) {
        if (!(error instanceof ApiError)) log.error('A file broke off midway', { error })
        // Not ended well: it would be taken for whole.
        res.destroy()
        return
      }
      withoutFile()
      reject(error)
    })
    // Who went away while the file was looked for is not told of a second time.
    if (res.destroyed) return end()
    res.once('close', end)
    if (event.method !== 'HEAD') return void stream.pipe(res)
    stream.destroy()
    res.end()
    return undefined
  })
}
