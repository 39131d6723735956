import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createS3Store, s3 } from '#server/platform/objectstore/s3'
import { type Answer, createGuardedClient, type GuardedClient } from '#server/platform/outbound/client'
import { createDial } from '#server/platform/outbound/dial'
import { OutboundError } from '#server/platform/outbound/outbound'
import { createOutboundPolicy } from '#server/platform/outbound/policy'
import { type S3Server, startS3Server } from '#test/support/s3-server'
import { bytesOf, MIB, read, storeContract } from './contract.ts'

let server: S3Server
let client: GuardedClient
beforeAll(async () => {
  server = await startS3Server()
  client = createGuardedClient(createOutboundPolicy({ allowed_private_hosts: ['127.0.0.1'] }))
})
afterAll(async () => {
  await client.close()
  await server.close()
})
const listed = async (store: ReturnType<typeof open>) => {
  const found: string[] = []
  for await (const { key } of store.list('')) found.push(key)
  return found
}
const open = (changes: object = {}, allowed = true, sending = client) => {
  const policy = createOutboundPolicy({ allowed_private_hosts: allowed ? ['127.0.0.1'] : [] })
  const { endpoint, bucket, access_key_id, secret_access_key } = server
  return s3.create(
    {
      endpoint,
      bucket,
      access_key_id,
      secret_access_key,
      region: 'us-east-1',
      prefix: 'team/a',
      path_style: true,
      ...changes,
    },
    {
      client: allowed ? sending : createGuardedClient(policy),
      dial: createDial(policy),
      local_directory: '',
    },
  )
}

describe('a bucket of an S3 server', () => {
  storeContract(async () => open())

  it('gets a part again whose connection broke, and loses none', async () => {
    const body = randomBytes(40 * MIB)
    server.breakNext((method, url) => method === 'PUT' && url.includes('partNumber=2'), 2)
    await open().put('broken/upload', bytesOf(body))
    expect((await read(open().get('broken/upload'))).equals(body)).toBe(true)
  })
  it('is read on where the connection broke', async () => {
    const body = randomBytes(8 * MIB)
    await open().put('broken/download', bytesOf(body))
    const before = server.requests.length
    server.breakNext((method, url) => method === 'GET' && url.includes('broken/download'), 2)
    expect((await read(open().get('broken/download'))).equals(body)).toBe(true)
    expect(server.requests.length - before).toBe(3)
  })
  it('is not used with a wrong secret: the sentence says what to check, and not the secret', async () => {
    const store = open({ secret_access_key: 'not-the-right-one' })
    await expect(store.put('x', bytesOf(Buffer.from('x')))).rejects.toMatchObject({
      code: 'denied',
      message: expect.stringMatching(/^127\.0\.0\.1:\d+ refused the access key \(SignatureDoesNotMatch\)/),
    })
  })
  it('has no parts of an upload that a killed process began, once it is begun anew or its object is removed', async () => {
    const uploads = new Map([
      ['one', 'backups/large'],
      ['two', 'backups/large.other'],
      ['three', 'backups/small'],
    ])
    const answer = (text: string) =>
      ({ status: 200, headers: {}, text: async () => text, discard: async () => {} }) as unknown as Answer
    const store = createS3Store(async ({ method, key, query = {} }) => {
      if (method === 'DELETE' && query.uploadId) uploads.delete(query.uploadId)
      if (method === 'POST' && query.uploads === '') uploads.set('new', key)
      if (method === 'POST' && query.uploadId) uploads.delete(query.uploadId)
      const listed = [...uploads].filter(([, name]) => name.startsWith(query.prefix ?? ''))
      const entries = listed.map(
        ([id, name]) => `<Upload><Key>${name}</Key><UploadId>${id}</UploadId></Upload>`,
      )
      if (method === 'GET')
        return answer(`<ListMultipartUploadsResult>${entries.join('')}</ListMultipartUploadsResult>`)
      return answer('<UploadId>new</UploadId>')
    }, 'backups')
    await store.put('large', bytesOf(Buffer.alloc(17 * MIB)))
    expect([...uploads.keys()]).toEqual(['two', 'three'])
    await store.delete('small')
    expect([...uploads.keys()]).toEqual(['two'])
  })
  it('that is full says so, and no part of the upload stays', async () => {
    server.failNext(
      (method, url) => method === 'PUT' && url.includes('partNumber=2'),
      507,
      'XMinioStorageFull',
    )
    await expect(open().put('full/one', bytesOf(randomBytes(40 * MIB)))).rejects.toMatchObject({
      code: 'full',
      message: expect.stringContaining('no space left'),
    })
    expect(server.requests.at(-1)).toMatch(/^DELETE .*full\/one\?uploadId=/)
  })
  it('that does not exist is named as such', async () => {
    await expect(open({ bucket: 'nobodys' }).put('x', bytesOf(Buffer.from('x')))).rejects.toMatchObject({
      code: 'denied',
      message: expect.stringContaining('no such bucket'),
    })
  })
  it.each([
    [
      'a refusal without an end',
      403,
      '<Error><Code>AccessDenied</Code>',
      'refused the access key (AccessDenied)',
    ],
    [
      'a code that is no code',
      403,
      `<Error><Code>${'x '.repeat(100)}</Code></Error>`,
      'refused the access key (HTTP 403)',
    ],
    ['a list without an end', 200, '<ListBucketResult>', 'sent more than 8388608 bytes'],
  ])(
    'that answers with %s is told so, and not listened to for ever',
    async (_what, status, text, message) => {
      const chunk = Buffer.alloc(MIB, '<Contents>')
      const answers = createServer((_request, response) => {
        response.writeHead(status)
        response.write(text)
        const more = () => {
          while (!response.destroyed && response.write(chunk));
          if (!response.destroyed) response.once('drain', more)
        }
        more()
      })
      await new Promise<void>((resolve) => answers.listen(0, '127.0.0.1', resolve))
      const endpoint = `http://127.0.0.1:${(answers.address() as AddressInfo).port}`
      try {
        await expect(listed(open({ endpoint }))).rejects.toMatchObject({
          name: 'ObjectStoreError',
          message: expect.stringContaining(message),
        })
      } finally {
        answers.closeAllConnections()
        answers.close()
      }
    },
  )
  it('that never closes an entry of its list has none', async () => {
    const answers = createServer((_request, response) => response.end('<Contents>'.repeat(500_000)))
    await new Promise<void>((resolve) => answers.listen(0, '127.0.0.1', resolve))
    const endpoint = `http://127.0.0.1:${(answers.address() as AddressInfo).port}`
    try {
      expect(await listed(open({ endpoint }))).toEqual([])
    } finally {
      answers.closeAllConnections()
      answers.close()
    }
  })
  it('has half a minute for what people wait for: whether an object is there, gone or listed', async () => {
    const times: Record<string, number | undefined> = {}
    const asked: GuardedClient = {
      send(_url, { method, timeout_ms } = {}) {
        times[`${method}`] = timeout_ms
        return Promise.reject(new OutboundError('forbidden', 'Nothing is sent.'))
      },
      close: async () => {},
    }
    const store = open({}, true, asked)
    for (const work of [() => store.stat('x'), () => store.delete('x'), () => listed(store)])
      await expect(work()).rejects.toMatchObject({ code: 'unreachable' })
    expect(times).toEqual({ HEAD: 30_000, DELETE: 30_000, GET: 30_000 })
  })
  it('whose list goes round in a circle is told so', async () => {
    const answers = createServer((_request, response) =>
      response.end('<NextContinuationToken>again</NextContinuationToken>'),
    )
    await new Promise<void>((resolve) => answers.listen(0, '127.0.0.1', resolve))
    const endpoint = `http://127.0.0.1:${(answers.address() as AddressInfo).port}`
    try {
      await expect(listed(open({ endpoint }))).rejects.toMatchObject({
        code: 'failed',
        message: expect.stringContaining('in a circle'),
      })
    } finally {
      answers.closeAllConnections()
      answers.close()
    }
  })
  it.each([
    ['brings a byte of an object in each connection', 206, 'broke before the answer was complete', 5],
    ['sends an object from its beginning when the rest is asked for', 200, 'sends no parts of an object', 2],
  ])('that %s is not read for ever, nor is the wrong part taken', async (_what, later, message, most) => {
    let asked = 0
    const answers = createServer((_request, response) => {
      asked += 1
      response.writeHead(asked === 1 ? 200 : later, { 'content-length': 1000 })
      response.write('x', () => setImmediate(() => response.destroy()))
    })
    await new Promise<void>((resolve) => answers.listen(0, '127.0.0.1', resolve))
    const endpoint = `http://127.0.0.1:${(answers.address() as AddressInfo).port}`
    try {
      await expect(read(open({ endpoint }).get('x'))).rejects.toMatchObject({
        name: 'ObjectStoreError',
        message: expect.stringContaining(message),
      })
      expect(asked).toBe(most)
    } finally {
      answers.closeAllConnections()
      answers.close()
    }
  })
  it('that names uploads without end is asked to end a few of them, and not for weeks', async () => {
    const deleted: string[] = []
    const upload = (at: number) => `<Upload><Key>team/a/x</Key><UploadId>${at}</UploadId></Upload>`
    const answers = createServer(({ method, url }, response) => {
      if (method === 'DELETE') deleted.push(url!)
      response.end(method === 'GET' ? Array.from({ length: 300 }, (_, at) => upload(at)).join('') : '')
    })
    await new Promise<void>((resolve) => answers.listen(0, '127.0.0.1', resolve))
    const endpoint = `http://127.0.0.1:${(answers.address() as AddressInfo).port}`
    try {
      await open({ endpoint }).delete('x')
      expect(deleted).toHaveLength(1 + 20)
    } finally {
      answers.closeAllConnections()
      answers.close()
    }
  })
  it('on a private address that the operator did not list is not connected to', async () => {
    const before = server.requests.length
    await expect(open({}, false).put('x', bytesOf(Buffer.from('x')))).rejects.toMatchObject({
      code: 'unreachable',
    })
    expect(server.requests.length).toBe(before)
  })
})
