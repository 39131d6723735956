import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { by, startTinyApi, type TinyApi } from './tiny-api.ts'

let api: TinyApi
beforeAll(async () => {
  api = await startTinyApi()
})
afterAll(() => api.close())
beforeEach(() => {
  api.services.handled.length = 0
  api.refused.length = 0
})
const code = (answer: { body: { error: { code: string } } }) => answer.body.error.code

describe('a list in the place of an object', () => {
  it.each([
    ['the whole body', [], 'body'],
    ['a field', { name: 'x', nested: [] }, 'nested'],
    [
      'an item of a list, which has its fields judged',
      { name: 'x', nested: { inner: [[]] } },
      'nested.inner.0.port',
    ],
  ])('is 422: %s', async (_what, body, path) => {
    const answer = await api.send('PUT', '/api/things/thing_1', { body, headers: by('admin') })
    expect([answer.status, answer.body.error.details[0].path]).toEqual([422, path])
    expect(api.services.handled).toEqual([])
  })
})

it('a value that is none of those there are is told with all of them', async () => {
  const answer = await api.send('PUT', '/api/things/thing_1', {
    body: { name: 'x', kind: 'huge' },
    headers: by('admin'),
  })
  expect(answer.body.error.message).toBe('kind: must be one of "small", "large".')
})

describe('the order in which a request is judged', () => {
  it('asks who calls before anything else, even for an unknown id with an unreadable body', async () => {
    const answer = await api.send('PUT', '/api/things/nothing?x=1', {
      raw: '{',
      headers: { 'content-type': 'text/plain' },
    })
    expect([answer.status, code(answer)]).toEqual([401, 'UNAUTHORIZED'])
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
  })
  it('says 404 for an unknown id before it judges query or body', async () => {
    const answer = await api.send('PUT', '/api/things/nothing?x=1', {
      raw: '{',
      headers: by('admin', { 'content-type': 'text/plain' }),
    })
    expect([answer.status, code(answer)]).toEqual([404, 'NOT_FOUND'])
  })
  it('answers a resource of a foreign project byte for byte like an unknown one', async () => {
    const foreign = await api.send('PUT', '/api/things/thing_1', {
      body: { name: 'x' },
      headers: by('outsider'),
    })
    const unknown = await api.send('PUT', '/api/things/thing_2', {
      body: { name: 'x' },
      headers: by('outsider'),
    })
    expect(foreign.status).toBe(404)
    expect(foreign.text).toBe(unknown.text)
    expect([...foreign.headers.keys()].sort()).toEqual([...unknown.headers.keys()].sort())
  })
  it('says 403 to a member whose role is too low before it judges the body', async () => {
    const answer = await api.send('PUT', '/api/things/thing_1', {
      raw: '{',
      headers: by('viewer', { 'content-type': 'application/json' }),
    })
    expect([answer.status, code(answer)]).toEqual([403, 'FORBIDDEN'])
    expect(api.refused).toEqual([{ code: 'FORBIDDEN', actor: 'viewer', path: '/api/things/thing_1' }])
  })
  it('refuses a read-only account before reading a body that names the project', async () => {
    const answer = await api.send('POST', '/api/things', {
      raw: '{',
      headers: by('reader', { 'content-type': 'application/json' }),
    })
    expect(answer.status).toBe(403)
  })
  it('says 400 for an unreadable body or query before 422 for a wrong field', async () => {
    expect(
      (
        await api.send('PUT', '/api/things/thing_1', {
          raw: '{"name":',
          headers: by('developer', { 'content-type': 'application/json' }),
        })
      ).status,
    ).toBe(400)
    expect(
      (
        await api.send('PUT', '/api/things/thing_1?x=1', {
          body: { name: '' },
          headers: by('developer'),
        })
      ).status,
    ).toBe(400)
    expect(
      (
        await api.send('PUT', '/api/things/thing_1', {
          body: { name: '' },
          headers: by('developer'),
        })
      ).status,
    ).toBe(422)
    expect(api.services.handled).toEqual([])
  })
  it('finds the project that a body names, and says 404 for one that the caller may not know', async () => {
    expect(
      (
        await api.send('POST', '/api/things', {
          body: { name: 'a', project_id: 'prj_1' },
          headers: by('developer'),
        })
      ).status,
    ).toBe(201)
    const unknown = await api.send('POST', '/api/things', {
      body: { name: 'a', project_id: 'prj_2' },
      headers: by('developer'),
    })
    const foreign = await api.send('POST', '/api/things', {
      body: { name: 'a', project_id: 'prj_1' },
      headers: by('outsider'),
    })
    expect([unknown.status, foreign.status]).toEqual([404, 404])
    expect(foreign.text).toBe(unknown.text)
  })
  it('takes the default project where the body names none, and asks whoever has no part in it for one of theirs', async () => {
    expect(
      (await api.send('POST', '/api/things', { body: { name: 'a' }, headers: by('developer') })).status,
    ).toBe(201)
    const { status, body } = await api.send('POST', '/api/things', {
      body: { name: 'a' },
      headers: by('outsider'),
    })
    expect([status, body.error.code, body.error.details]).toEqual([
      422,
      'VALIDATION_ERROR',
      [
        {
          path: 'project_id',
          message: 'is required: name one of your projects, or make one with POST /api/projects.',
        },
      ],
    ])
  })
})

describe('paths and methods', () => {
  it.each([
    '/api',
    '/api/',
    '/api/nothing',
    '/api/things/a/b/c',
    '//api/things',
    '/api//things',
    '/API/things',
    '/Api',
    '/\\api/things',
  ])('has no %s', async (path) => {
    const answer = await api.sendRaw('GET', path, by('admin'))
    expect(answer.status).toBe(404)
    expect(JSON.parse(answer.text)).toEqual({
      error: { code: 'NOT_FOUND', message: 'There is no such path.' },
    })
  })
  it.each(['DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND'])(
    'refuses %s on a path that knows other methods, and names those',
    async (method) => {
      const answer = await api.sendRaw(method, '/api/things', by('admin'))
      expect([answer.status, answer.headers.allow]).toEqual([405, 'GET, HEAD, POST'])
      expect(JSON.parse(answer.text).error.code).toBe('METHOD_NOT_ALLOWED')
    },
  )
  it('answers HEAD like GET without the body', async () => {
    const answer = await api.sendRaw('HEAD', '/api/things/thing_1', by('viewer'))
    expect([answer.status, answer.text]).toEqual([200, ''])
    expect((await api.sendRaw('HEAD', '/api/things/thing_2', by('viewer'))).status).toBe(404)
  })
  it.each(['/api/things/%E0%A4%A', '/api/things/%', '/api/%zz', '/api/things?q=%E0%A4%A'])(
    'answers malformed percent-encoding in %s with 400',
    async (path) => {
      const answer = await api.sendRaw('GET', path, by('admin'))
      expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([400, 'BAD_REQUEST'])
    },
  )
  it.each(['thing_%00', 'thing_1%3Fx', 'thing_1%2F..', '..%2Fthing_1', "thing_' OR '1'='1", '%25'])(
    'takes %s as an id that nobody has',
    async (id) => {
      expect((await api.sendRaw('GET', `/api/things/${id.replaceAll(' ', '%20')}`, by('admin'))).status).toBe(
        404,
      )
    },
  )
  it('does not care for a slash at the end', async () => {
    expect((await api.sendRaw('GET', '/api/things/', by('viewer'))).status).toBe(200)
  })
  it('refuses an address longer than 8 KiB', async () => {
    expect((await api.sendRaw('GET', `/api/things?q=${'a'.repeat(9000)}`, by('viewer'))).status).toBe(400)
  })
})

describe('bodies', () => {
  const json = (name: string) => by(name, { 'content-type': 'application/json' })
  const put = (raw: string | Buffer, headers = json('developer')) =>
    api.send('PUT', '/api/things/thing_1', { raw, headers })

  it.each([
    ['nothing that is JSON', 'hello'],
    ['a cut-off object', '{"name":"a"'],
    ['two values', '{} {}'],
    ['NaN', '{"size":NaN}'],
    ['a comment', '{/* */}'],
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22])],
  ])('answers %s with 400', async (_what, raw) => {
    const answer = await put(raw)
    expect([answer.status, code(answer)]).toEqual([400, 'BAD_REQUEST'])
  })
  it.each(['[]', '"text"', '7', 'null', 'true'])(
    'answers %s where an object belongs with 422',
    async (raw) => {
      const answer = await put(raw)
      expect([answer.status, code(answer)]).toEqual([422, 'VALIDATION_ERROR'])
    },
  )
  it('accepts a byte order mark', async () => {
    expect(
      (await put(Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from('{"name":"a"}')]))).status,
    ).toBe(200)
  })
  it('refuses nesting deeper than 32 levels, at any size', async () => {
    expect((await put('['.repeat(33) + ']'.repeat(33))).status).toBe(400)
    expect((await put('['.repeat(200_000) + ']'.repeat(200_000))).status).toBe(400)
  })
  it('refuses a key that reaches into prototypes', async () => {
    expect((await put('{"name":"a","__proto__":{"admin":true}}')).status).toBe(400)
    expect((await put('{"name":"a","nested":{"__proto__":1}}')).status).toBe(400)
    expect((await put('{"name":"a","constructor":{"prototype":{}}}')).status).toBe(422)
    expect(({} as Record<string, unknown>).admin).toBeUndefined()
  })
  it.each(['{"toString":1}', '[{"toString":1,"valueOf":2}]'])(
    'answers %s in the place of a text, a list or a number with 422, and calls nothing of it',
    async (value) => {
      for (const body of [
        `{"name":${value}}`,
        `{"name":"a","tags":[${value}]}`,
        `{"name":"a","size":${value}}`,
      ])
        expect([body, (await put(body)).status]).toEqual([body, 422])
    },
  )
  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    '',
  ])('accepts JSON only, not %s', async (type) => {
    const answer = await api
      .sendRaw('PUT', '/api/things/thing_1', by('developer', { 'content-type': type, 'content-length': '2' }))
      .catch(() => undefined)
    const sent = await put('name=a', by('developer', { 'content-type': type || 'x/y' }))
    expect([sent.status, code(sent)]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE'])
    expect(answer?.status ?? 415).toBe(415)
  })
  it('accepts JSON with a charset', async () => {
    expect(
      (await put('{"name":"a"}', by('developer', { 'content-type': 'Application/JSON; charset=utf-8' })))
        .status,
    ).toBe(200)
  })
  it('refuses a compressed body', async () => {
    expect(
      (await put('{}', by('developer', { 'content-type': 'application/json', 'content-encoding': 'gzip' })))
        .status,
    ).toBe(415)
  })
  it('reads 1 MiB, and refuses one byte more by its announced length without reading it, closing the connection', async () => {
    const largest = `{"name":"a"${' '.repeat(1_048_576 - 12)}}`
    expect((await put(largest)).status).toBe(200)
    const text = await api.speak(
      `PUT /api/things/thing_1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer developer\r\nContent-Type: application/json\r\nContent-Length: 1048577\r\n\r\n{`,
    )
    expect(text).toMatch(/^HTTP\/1\.1 413 /)
    expect(text.toLowerCase()).toContain('connection: close')
    expect(text).toContain('"code":"PAYLOAD_TOO_LARGE"')
  })
  it('refuses a chunked body as soon as it is longer than 1 MiB, closing the connection', async () => {
    const chunk = `10000\r\n${' '.repeat(65_536)}\r\n`
    const text = await api.speak(
      `PUT /api/things/thing_1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer developer\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(17)}`,
    )
    expect(text).toMatch(/^HTTP\/1\.1 413 /)
    expect(text.toLowerCase()).toContain('connection: close')
    expect(api.services.handled).toEqual([])
  })
  it('does not read a large body of a caller whom it does not know', async () => {
    const text = await api.speak(
      'PUT /api/things/thing_1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n{',
    )
    expect(text).toMatch(/^HTTP\/1\.1 401 /)
    expect(text.toLowerCase()).toContain('connection: close')
  })
  it('streams an upload up to its own limit, announced or not', async () => {
    const upload = (headers: Record<string, string>, raw: string) =>
      api.send('POST', '/api/things/thing_1/upload', { raw, headers: by('developer', headers) })
    expect((await upload({ 'content-type': 'application/gzip' }, 'x'.repeat(1000))).body).toEqual({
      data: { size: 1000 },
    })
    expect((await upload({ 'content-type': 'application/gzip' }, 'x'.repeat(1001))).status).toBe(413)
    expect((await upload({ 'content-type': 'application/json' }, '{}')).status).toBe(415)
    const chunk = `200\r\n${'x'.repeat(512)}\r\n`
    const text = await api.speak(
      `POST /api/things/thing_1/upload HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer developer\r\nContent-Type: application/gzip\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(3)}`,
    )
    expect(text).toMatch(/^HTTP\/1\.1 413 /)
  })
})

describe('validation', () => {
  const post = (body: unknown) => api.send('POST', '/api/things', { body, headers: by('developer') })

  it('leads with the dotted path of the first wrong field and lists every one', async () => {
    const answer = await post({ size: 0, nested: { inner: [{ port: 1 }, { port: 'x' }] } })
    expect(answer.status).toBe(422)
    expect(answer.body.error.message).toBe('name: is required.')
    expect(answer.body.error.details).toEqual([
      { path: 'name', message: 'is required.' },
      { path: 'size', message: 'must be at least 1.' },
      { path: 'nested.inner.1.port', message: 'must be a number.' },
    ])
  })
  it('refuses far too many items at once, without judging each of them', async () => {
    const many = await post({ name: '', tags: Array.from({ length: 20_000 }, () => 1) })
    expect(many.status).toBe(422)
    expect(many.body.error.details).toEqual([{ path: 'tags', message: 'must have at most 4000 items.' }])
    // Of a list whose schema names no limit, too: each of its items would be worded as wrong.
    const unlimited = await post({ name: 'a', nested: { inner: Array.from({ length: 20_000 }, () => 1) } })
    expect(unlimited.body.error.details).toEqual([
      { path: 'nested.inner', message: 'must have at most 4000 items.' },
    ])
    const large = await post({ name: 'a', tags: Array.from({ length: 100 }, () => 'x'.repeat(1000)) })
    expect(large.body.error.details).toEqual([
      { path: 'tags', message: 'must have at most 65536 characters in all.' },
    ])
  })
  it('says of what there must be more or less, and how large a number may be', async () => {
    expect((await post({ name: '', nested: { inner: 'x' } })).body.error.details).toEqual([
      { path: 'name', message: 'must not be empty.' },
      { path: 'nested.inner', message: 'must be a list.' },
    ])
    expect((await post({ name: 'x'.repeat(11) })).body.error.message).toBe(
      'name: must have at most 10 characters.',
    )
    expect((await post({ name: 'a', tags: ['a', 'b', 'c'] })).body.error.message).toBe(
      'tags: must have at most 2 items.',
    )
    expect(
      (await api.send('GET', `/api/things?page=${'9'.repeat(20)}`, { headers: by('viewer') })).body.error
        .message,
    ).toBe('page: must be a number of at most 15 digits.')
    expect(
      (await api.send('GET', '/api/things?page=two', { headers: by('viewer') })).body.error.message,
    ).toBe('page: must be a number.')
  })
  it('names a field that does not exist', async () => {
    const answer = await post({ name: 'a', is_admin: true })
    expect(answer.body.error.message).toBe('is_admin: is not a field of this request.')
  })
  it('never repeats what was sent', async () => {
    const secret = 'S3cr3t-hunter2-value'
    const answers = await Promise.all([
      post({ name: secret.repeat(3) }),
      post({ name: [secret] }),
      post({ name: 'a', kind: secret }),
      post({ name: 'a', size: secret }),
      post({ name: 'a', nested: { inner: secret } }),
    ])
    for (const answer of answers) {
      expect(answer.status).toBe(422)
      expect(answer.text).not.toContain('S3cr3t')
    }
  })
  it('lists at most 20 wrong fields and cuts a huge field name', async () => {
    const many = await post(
      Object.fromEntries([['name', 'a'], ...Array.from({ length: 500 }, (_, i) => [`k${i}`, 1])]),
    )
    expect(many.body.error.details.length).toBeLessThanOrEqual(20)
    const long = await post({ name: 'a', ['k'.repeat(100_000)]: 1 })
    expect(long.text.length).toBeLessThan(1000)
  })
  it('refuses a text that would come back as another one', async () => {
    const answer = await post({ name: 'a\ud800b' })
    expect([answer.status, answer.body.error.details]).toEqual([
      422,
      [{ path: 'name', message: 'holds half of a character (a surrogate without its other half).' }],
    ])
    expect(api.services.handled).toEqual([])
  })
  it('lets only listed fields of an answer out', async () => {
    const answer = await post({ name: 'a' })
    expect(answer.body).toEqual({ data: { id: 'thing_1', name: 'a' } })
  })
  it('answers 500, and nothing of the value, when an answer has not the form that its schema says', async () => {
    const answer = await api.send('GET', '/api/leaky', { headers: by('viewer') })
    expect([answer.status, code(answer)]).toEqual([500, 'INTERNAL_ERROR'])
    expect(answer.text).not.toContain('secret-value')
  })
})

describe('queries', () => {
  const list = (search: string) => api.send('GET', `/api/things${search}`, { headers: by('viewer') })

  it('has defaults, and serves more than 100 per page as 100', async () => {
    expect((await list('')).body.data).toEqual({ page: 1, per_page: 20 })
    expect((await list('?page=2&per_page=101')).body.data).toEqual({ page: 2, per_page: 100 })
    expect((await list('?per_page=999999999')).body.data.per_page).toBe(100)
  })
  it.each([
    '?page=0',
    '?page=-1',
    '?page=abc',
    '?page=1e3',
    '?page=',
    '?page=1.5',
    '?page=0x1',
    '?page=%201',
    '?page=99999999999999999999',
    '?page=1&page=2',
    '?page[]=1',
    '?deep=yes',
    '?nothing=1',
    '?__proto__=1',
    '?per_page=0',
  ])('refuses %s with 400', async (search) => {
    const answer = await list(search)
    expect([answer.status, code(answer)]).toEqual([400, 'BAD_REQUEST'])
  })
  it('reads texts and booleans as what they mean', async () => {
    expect((await list('?q=7&deep=true')).body.data).toEqual({
      page: 1,
      per_page: 20,
      q: '7',
      deep: true,
    })
  })
  it('refuses any parameter where an endpoint has none', async () => {
    expect((await api.send('GET', '/api/things/thing_1?verbose=1', { headers: by('viewer') })).status).toBe(
      400,
    )
  })
})

describe('every response', () => {
  it.each([
    ['a success', 'GET', '/api/things', by('viewer')],
    ['an unknown caller', 'GET', '/api/things', {}],
    ['an unknown path', 'GET', '/api/nothing', {}],
    ['a wrong method', 'DELETE', '/api/things', {}],
    ['a malformed path', 'GET', '/api/%', {}],
    ['a fault', 'POST', '/api/broken', by('viewer')],
    ['a page that is not there', 'GET', '/nothing', {}],
  ])(
    'carries a request id, no-store, nosniff and a content security policy: %s',
    async (_what, method, path, headers) => {
      const answer = await api.sendRaw(method, path, headers as Record<string, string>)
      expect(answer.headers['x-request-id']).toMatch(/^req_[0-9a-z]{20}$/)
      expect(answer.headers['cache-control']).toBe('no-store')
      expect(answer.headers['x-content-type-options']).toBe('nosniff')
      expect(answer.headers['referrer-policy']).toBe('same-origin')
      expect(answer.headers['content-security-policy']).toContain("frame-ancestors 'none'")
      expect(answer.headers['content-type']).toContain('application/json')
      expect(answer.headers.server ?? answer.headers['x-powered-by']).toBeUndefined()
    },
  )
  it('has an id of its own', async () => {
    const ids = await Promise.all(
      Array.from({ length: 20 }, async () =>
        (await api.send('GET', '/api/things', { headers: by('viewer') })).headers.get('x-request-id'),
      ),
    )
    expect(new Set(ids).size).toBe(20)
  })
  it('names its media type when it is not JSON, so that a browser runs nothing of it', async () => {
    const answer = await api.send('GET', '/api/text', { headers: by('viewer') })
    expect([answer.headers.get('content-type'), answer.text]).toEqual([
      'text/plain; charset=utf-8',
      '<script>',
    ])
  })
})

describe('faults', () => {
  const fault = (error: unknown) => {
    api.services.fault.error = error
    return api.send('POST', '/api/broken', { headers: by('viewer') })
  }
  it.each(['SQLITE_BUSY', 'SQLITE_BUSY_SNAPSHOT', 'SQLITE_LOCKED', 'SQLITE_READONLY', 'SQLITE_IOERR_WRITE'])(
    'answers 503 with Retry-After when the database says %s',
    async (sqlite) => {
      const answer = await fault(Object.assign(new Error('database path /data/x'), { code: sqlite }))
      expect([answer.status, code(answer), answer.headers.get('retry-after')]).toEqual([
        503,
        'UNAVAILABLE',
        '5',
      ])
      expect(answer.text).not.toContain('/data')
    },
  )
  it.each(['SQLITE_CORRUPT', 'SQLITE_CORRUPT_INDEX', 'SQLITE_NOTADB'])(
    'says that the database is damaged when it says %s',
    async (sqlite) => {
      const answer = await fault(Object.assign(new Error('malformed: /data/x'), { code: sqlite }))
      expect([answer.status, code(answer), answer.text]).toEqual([
        503,
        'UNAVAILABLE',
        expect.stringContaining('its file is damaged, or its disk fails'),
      ])
    },
  )
  it.each(['SQLITE_FULL', 'ENOSPC', 'EDQUOT'])('answers 507 when the disk is full: %s', async (full) => {
    const answer = await fault(Object.assign(new Error('no space'), { code: full }))
    expect([answer.status, code(answer)]).toEqual([507, 'DISK_FULL'])
  })
  it.each([
    ['an error', new Error('secret detail')],
    ['a text', 'secret detail'],
    ['nothing', undefined],
    ['null', null],
    [
      'an error with a status of another service',
      Object.assign(new Error('secret detail'), { statusCode: 404 }),
    ],
    ['an error that wraps one of ours', new Error('secret detail', { cause: new Error('secret detail') })],
  ])('answers 500 with the request id and nothing else for %s that nobody expected', async (_what, error) => {
    api.kernel.lines.length = 0
    const answer = await fault(error)
    expect(answer.status).toBe(500)
    expect(answer.body).toEqual({
      error: {
        code: 'INTERNAL_ERROR',
        message: expect.any(String),
        request_id: answer.headers.get('x-request-id'),
      },
    })
    expect(answer.text).not.toContain('secret')
    expect(api.kernel.lines).toContainEqual(
      expect.objectContaining({ level: 'error', request: answer.headers.get('x-request-id') }),
    )
  })
})
