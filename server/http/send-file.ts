import type { Readable } from 'node:stream'
import type { H3Event } from 'h3'
import { ApiError } from '#server/kernel/errors'
import type { Log } from '#server/kernel/log'

/** What a handler says of a file, which is wrong of the error that is answered in its place. */
const OF_THE_FILE = ['Accept-Ranges', 'Content-Disposition', 'Content-Length', 'Content-Range', 'ETag']

/**
 * Sends a stream as the body. The HTTP library would neither close the stream when the client goes away, so that
 * the file or connection behind it stays open for good, nor end the connection when the stream fails midway.
 * Rejects while nothing was sent yet: then there is an error to answer.
 */
export function sendFile(event: H3Event, stream: Readable, log: Log): Promise<null> {
  const { res } = event.node
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
      for (const name of OF_THE_FILE) res.removeHeader(name)
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
