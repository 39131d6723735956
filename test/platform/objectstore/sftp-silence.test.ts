import { generateKeyPairSync } from 'node:crypto'
import type { AddressInfo, Socket } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import ssh2 from 'ssh2'
import { connectSftp } from '#server/platform/objectstore/sftp-connection'
import { createSftpStore } from '#server/platform/objectstore/sftp'
import { createDial } from '#server/platform/outbound/dial'
import { createOutboundPolicy } from '#server/platform/outbound/policy'
import { bytesOf } from './contract.ts'

const dial = createDial(createOutboundPolicy({ allowed_private_hosts: ['127.0.0.1'] }))
let server: InstanceType<typeof ssh2.Server>
let closed: Promise<void>
const [FOLDER, FILE] = [0o040755, 0o100644]
/** What it says is in each of its folders, again and again. */
let told: number
const entry = (mode: number) => ({
  filename: mode === FOLDER ? 'more' : 'file',
  attrs: { mode, size: 1, uid: 0, gid: 0, atime: 0, mtime: 0 },
})
/** Whether it lets a session be opened at all. */
let opens_sessions: boolean
/** Whether it takes what was sent to it off the wire, once a session is open. */
let reads: boolean
beforeEach(async () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const key = privateKey.export({ type: 'pkcs1', format: 'pem' })
  const { promise, resolve } = Promise.withResolvers<void>()
  closed = promise
  opens_sessions = true
  reads = true
  // It lets everybody in, answers that it is alive, and nothing that is asked of its files.
  server = new ssh2.Server({ hostKeys: [key] }, (client) => {
    client.on('authentication', (asked) => asked.accept())
    client.on('session', (accept) => {
      if (!opens_sessions) return
      accept().on('sftp', (taken) => {
        const files = taken()
        if (!reads) (client as unknown as { _sock: Socket })._sock.pause()
        for (const asked of ['OPEN', 'STAT', 'LSTAT', 'MKDIR'] as const) files.on(asked, () => {})
        // Every folder holds another one, and goes on.
        files.on('OPENDIR', (id) => files.handle(id, Buffer.from('x')))
        files.on('READDIR', (id) => files.name(id, [{ ...entry(told), longname: 'x' }] as never))
        files.on('CLOSE', (id) => files.status(id, 0))
      })
    })
    client.on('error', () => {}).on('close', resolve)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
})
afterEach(() => new Promise<void>((ended) => server.close(() => ended())))

const silence = { code: 'unreachable', message: expect.stringContaining('did not answer in time') }
async function opener() {
  const { port } = server.address() as AddressInfo
  const login = { host: '127.0.0.1', port, username: 'ops', password: 'x', path: 'backups' }
  const shown = await connectSftp(dial, login).catch((error: Error) => error)
  const host_key = /SHA256:[A-Za-z0-9+/]{43}/.exec((shown as Error).message)![0]
  return (silence_ms = 30) => createSftpStore({ ...login, host_key }, dial, silence_ms, 10)
}

it('a server that is alive and answers nothing holds an object for no longer than its silence may last', async () => {
  const open = await opener()
  await expect(open().put('x', bytesOf(Buffer.from('x')))).rejects.toMatchObject(silence)
  await expect(open().stat('x')).rejects.toMatchObject(silence)
  const reading = async () => {
    for await (const _ of open().get('x'));
  }
  await expect(reading()).rejects.toMatchObject(silence)
  await closed
})

it('a server that lets somebody in and opens nothing holds neither an object nor who is done with it', async () => {
  opens_sessions = false
  const open = await opener()
  await expect(open().put('x', bytesOf(Buffer.from('x')))).rejects.toMatchObject(silence)
  const store = open()
  const asked = expect(store.stat('x')).rejects.toMatchObject(silence)
  await store.close()
  await asked
})

it('a server that takes nothing off the wire any more holds an object for no longer than its silence may last', async () => {
  reads = false
  const open = await opener()
  // More than the window of a channel, and what two sockets take.
  const many = async function* () {
    for (let n = 0; n < 400; n += 1) yield Buffer.alloc(65_536)
  }
  await expect(open().put('x', many())).rejects.toMatchObject(silence)
  const reading = async () => {
    for await (const _ of open().get('x'));
  }
  await expect(reading()).rejects.toMatchObject(silence)
  await expect(open().delete('x')).rejects.toMatchObject(silence)
})

it.each([
  ['files', FILE],
  ['folders in folders', FOLDER],
])('a list of %s without an end is told so', async (_what, mode) => {
  told = mode
  const store = (await opener())(60_000)
  const listing = async () => {
    for await (const _ of store.list(''));
  }
  await expect(listing()).rejects.toMatchObject({
    code: 'failed',
    message: expect.stringContaining('does not end'),
  })
  await store.close()
})
