import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { writeArchive } from '#server/backups/archive/write'
import { s3 } from '#server/platform/objectstore/s3'
import { createGuardedClient } from '#server/platform/outbound/client'
import { createDial } from '#server/platform/outbound/dial'
import { createOutboundPolicy } from '#server/platform/outbound/policy'

const policy = createOutboundPolicy({ allowed_private_hosts: ['127.0.0.1'] })
const client = createGuardedClient(policy)
let server: Server
afterEach(async () => {
  server.closeAllConnections()
  await new Promise((closed) => server.close(closed))
})

it.each([
  ['a page of its own', '<html>Welcome</html>'],
  ['nothing', ''],
])(
  'an archive is not taken for written where a proxy answers every request with 200 and %s',
  async (_what, page) => {
    server = createServer((request, response) => {
      request.resume().once('end', () => response.writeHead(200, { 'content-type': 'text/html' }).end(page))
    })
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const login = { access_key_id: 'k', secret_access_key: 's', region: 'eu', path_style: true, prefix: '' }
    const ports = { client, dial: createDial(policy), local_directory: '' }
    const store = s3.create({ endpoint, bucket: 'backups', ...login }, ports)
    const dump = (async function* () {
      yield Buffer.from('a dump')
    })()
    await expect(writeArchive(dump, { store, key: 'x' })).rejects.toMatchObject({
      name: 'ObjectStoreError',
      code: 'failed',
      message: expect.stringContaining('does not hold what was written'),
    })
  },
)
