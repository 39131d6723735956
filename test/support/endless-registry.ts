/**
 * A registry on the loopback port of its argument, whose images have settings without end. Run as a program, so that it
 * can stand in the network of an engine; says `ready`, `asked` for settings, and
 * `closed` once the engine reads no more.
 */
import { createHash } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'

const digestOf = (text: string) => `sha256:${createHash('sha256').update(text).digest('hex')}`
const MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json'
const SIZE = 1e12
const manifest = JSON.stringify({
  schemaVersion: 2,
  mediaType: MANIFEST,
  config: {
    mediaType: 'application/vnd.docker.container.image.v1+json',
    size: SIZE,
    digest: digestOf('x'),
  },
  layers: [],
})
const block = Buffer.alloc(1024 ** 2, ' ')

function sendForEver(response: ServerResponse): void {
  const send = () => {
    while (response.writable && response.write(block));
  }
  response.on('drain', send).on('close', () => console.log('closed'))
  send()
}

createServer((request, response) => {
  if (request.url === '/v2/') return void response.end('{}')
  if (request.url?.includes('/blobs/')) {
    response.writeHead(200, { 'content-length': SIZE })
    if (request.method === 'HEAD') return void response.end()
    console.log('asked')
    return sendForEver(response)
  }
  response.writeHead(200, {
    'content-type': MANIFEST,
    'content-length': manifest.length,
    'docker-content-digest': digestOf(manifest),
  })
  response.end(request.method === 'HEAD' ? undefined : manifest)
}).listen(Number(process.argv[2]), '127.0.0.1', () => console.log('ready'))
