import { Readable } from 'node:stream'
import { endpoint } from '#server/endpoint'
import { IdParam } from '#server/http/schemas'

/** Streams the archive of a backup. */
export default endpoint({
  summary: 'Download a backup',
  description:
    'The archive as it lies at the destination, compressed with zstd and encrypted if it was asked for. `Range` with one range of bytes continues a download; 206 then tells which part is sent. A narrowed API key gets 403: an archive holds everything that its other answers mask.',
  access: 'developer',
  scope: { noun: 'backup' },
  effect: 'write',
  params: IdParam,
  media_types: ['application/octet-stream'],
  errors: ['NOT_FOUND', 'CONFLICT', 'RANGE_NOT_SATISFIABLE'],
  async handler({ actor, params, header, response, services }) {
    const { bytes, window, size_bytes, file_name, sha256 } = await services.backups.download(
      actor,
      params.id,
      { range: header('range'), if_range: header('if-range') },
    )
    const { start, end, partial } = window
    response.header('Content-Disposition', `attachment; filename="${file_name}"`)
    response.header('Accept-Ranges', 'bytes')
    response.header('ETag', `"${sha256}"`)
    response.header('Content-Length', String(partial ? end - start + 1 : size_bytes))
    if (partial) response.header('Content-Range', `bytes ${start}-${end}/${size_bytes}`)
    if (partial) response.status(206)
    return Readable.from(bytes, { objectMode: false })
  },
})
