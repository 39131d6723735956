import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sftp } from '#server/platform/objectstore/sftp'
import { createGuardedClient } from '#server/platform/outbound/client'
import { createDial } from '#server/platform/outbound/dial'
import { createOutboundPolicy } from '#server/platform/outbound/policy'
import { type SftpServer, startSftpServer } from '#test/support/sftp-server'
import { breaking, bytesOf, storeContract } from './contract.ts'

let server: SftpServer
beforeAll(async () => {
  server = await startSftpServer()
})
afterAll(() => server.close())
const open = (changes: object = {}, allowed = ['127.0.0.1']) => {
  const policy = createOutboundPolicy({ allowed_private_hosts: allowed })
  const { port, username, private_key, host_key, folder } = server
  return sftp.create(
    { host: '127.0.0.1', port, username, private_key, host_key, path: `${folder}/made/here`, ...changes },
    { client: createGuardedClient(policy), dial: createDial(policy), local_directory: '' },
  )
}
const put = (store: ReturnType<typeof open>) => store.put('x', bytesOf(Buffer.from('x')))

describe('a folder of an SFTP server', () => {
  storeContract(async () => open())

  it.each([
    ['/srv/backups', 'ops@nas.example.org:22/srv/backups'],
    ['backups', 'ops@nas.example.org:22/~/backups'],
  ])('that is %s is told as %s', (path, location) => {
    expect(sftp.location({ username: 'ops', host: 'nas.example.org', port: 22, path })).toBe(location)
  })
  it('gets no partial file', async () => {
    const path = join(server.folder, 'partial')
    const store = open({ path })
    await expect(store.put('x', breaking(3_000_000))).rejects.toThrow('The dump broke off.')
    expect(readdirSync(path)).toEqual([])
    await store.close()
  })
  it('says that its disk is full', async () => {
    // Linux' own full device: the server is told that there is no space.
    const store = open({ path: '/dev' })
    const { symlinkSync, mkdirSync } = await import('node:fs')
    const folder = join(server.folder, 'full')
    mkdirSync(folder)
    symlinkSync('/dev/full', join(folder, 'x.partial'))
    await expect(put(open({ path: folder }))).rejects.toMatchObject({ code: 'failed' })
    await store.close()
  })
  it('without an approved key is told which key the server shows, and sends nothing', async () => {
    await expect(put(open({ host_key: undefined }))).rejects.toMatchObject({
      code: 'host_key',
      message: expect.stringContaining(server.host_key),
    })
  })
  it('with another login is refused with a sentence', async () => {
    await expect(put(open({ private_key: undefined, password: 'wrong' }))).rejects.toMatchObject({
      code: 'denied',
      message: expect.stringContaining('refused the login'),
    })
  })
  it('on a private address that the operator did not list is not connected to', async () => {
    await expect(put(open({}, []))).rejects.toMatchObject({ code: 'unreachable' })
  })
  it('that shows another key than the approved one gets nothing', async () => {
    await server.changeHostKey()
    await expect(put(open())).rejects.toMatchObject({
      code: 'host_key',
      message: expect.stringMatching(
        /shows the key SHA256:\S+, not the approved one, SHA256:\S+\. Nothing was sent to it\.$/,
      ),
    })
  })
})
