import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Config } from '#server/kernel/config'
import { createApi } from '../../cli/client/api.ts'
import { writeContexts } from '../../cli/client/contexts.ts'
import { sessionOf } from '../../cli/client/session.ts'
import { CLIENT_VERBS } from '../../cli/client-verbs.ts'
import { complete } from '../../cli/complete.ts'
import { createProgram, runProgram } from '../../cli/program.ts'
import { readiness } from '../../cli/server-here.ts'

let answer: (request: IncomingMessage, response: ServerResponse) => void
let asked: IncomingMessage[]
let folder: string
const portOf = (from: { address(): unknown }) => (from.address() as AddressInfo).port
/** Time passes by `vi.advanceTimersByTime` alone; the sockets of Node go on. */
const holdTime = () => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
const server = createServer((request, response) => {
  asked.push(request)
  answer(request, response)
})
let url: string
beforeEach(async () => {
  asked = []
  folder = mkdtempSync(join(tmpdir(), 'ptr-http-'))
  answer = () => undefined
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${portOf(server)}`
})
afterEach(async () => {
  vi.useRealTimers()
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true, force: true })
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

describe('a call of the client', () => {
  it('ends when its caller gives it up, and with it the connection', async () => {
    const giving_up = new AbortController()
    const closed = new Promise<void>((resolve) => {
      answer = (request) => {
        request.socket.once('close', () => resolve())
        giving_up.abort()
      }
    })
    const call = createApi('a', { url }).GET('/api/apps', { signal: giving_up.signal })
    await expect(call).rejects.toThrow(`${url} does not answer`)
    await closed
  })
  it('is given up after ten seconds by a host that lets no connection come about', async () => {
    holdTime()
    // Takes the bytes of TLS and says nothing: a connection is one when both have agreed on it.
    const mute = createTcpServer(() => vi.advanceTimersByTime(10_000))
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
    const address = `https://127.0.0.1:${portOf(mute)}`
    await expect(createApi('a', { url: address }).GET('/api/apps')).rejects.toThrow(
      `${address} does not answer (no connection within 10 s).`,
    )
    await new Promise((resolve) => mute.close(resolve))
  })
  it('waits for a server that is slow once it is connected', async () => {
    holdTime()
    answer = (_request, response) => {
      vi.advanceTimersByTime(60_000)
      response.setHeader('content-type', 'application/json').end('{"data":[]}')
    }
    expect(await createApi('a', { url }).GET('/api/apps')).toEqual({ data: { data: [] } })
  })
  it('takes nothing that it does not do', () => {
    const { GET, POST } = createApi('a', { url })
    const never = () => [
      // @ts-expect-error: headers are the client's own.
      GET('/api/apps', { headers: { 'X-API-Key': 'k' } }),
      // @ts-expect-error: answers are read by their type.
      GET('/api/apps', { parseAs: 'text' }),
      // @ts-expect-error: redirects are followed nowhere.
      POST('/api/auth/refresh', { redirect: 'follow' }),
    ]
    expect(never).toBeTypeOf('function')
  })
})

describe('an answer that leads elsewhere', () => {
  const answerAt = (location: string) => {
    answer = (_request, response) => void response.writeHead(308, { location }).end()
  }
  it.each(['typed', 'streamed'])('names where, and takes no credentials there (%s)', async (kind) => {
    const heard: IncomingMessage['headers'][] = []
    const other = createServer((request, response) => {
      heard.push(request.headers)
      response.end()
    })
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const there = `http://127.0.0.1:${portOf(other)}`
    answerAt(`${there}/api/apps`)
    const { api, send } = sessionOf('a', { url, api_key: 'secret' })
    const call = kind === 'typed' ? api.GET('/api/apps') : send('/api/apps', {})
    await expect(call).rejects.toThrow(`The server answers at ${there}: log in there.`)
    expect(heard).toEqual([])
    await new Promise((resolve) => other.close(resolve))
  })
  it('is told as it is where it names no other server', async () => {
    const { GET } = createApi('a', { url })
    answerAt('/sign-in?next=%2Fapi')
    await expect(GET('/api/apps')).rejects.toThrow(`The server answered 308 and leads to ${url}/sign-in.`)
    answerAt('javascript:alert(1)')
    await expect(GET('/api/apps')).rejects.toThrow('The server answered 308.')
  })
})

describe('what a server says of itself', () => {
  it('is waited for five seconds in all, also where bytes keep coming', async () => {
    holdTime()
    answer = (request, response) => {
      const drip = setInterval(() => response.write(' '), 100)
      request.socket.once('close', () => clearInterval(drip))
      vi.advanceTimersByTime(5_000)
    }
    const config = { host: '127.0.0.1', port: portOf(server) } as Config
    expect(await readiness(config)).toBeUndefined()
  })
})

describe('the completion of a shell', () => {
  it('waits a moment and no longer for a server that hangs, also where the login is to be renewed', async () => {
    const soon = Buffer.from(JSON.stringify({ exp: Math.floor(Date.now() / 1000) + 86_400 })).toString(
      'base64url',
    )
    const path = join(folder, 'credentials.json')
    vi.stubEnv('PORTREEVE_CREDENTIALS', path)
    vi.stubEnv('PORTREEVE_URL', '')
    vi.stubEnv('PORTREEVE_CONTEXT', '')
    writeContexts(process.env, { current: 'a', contexts: { a: { url, token: `x.${soon}.x` } } })
    await complete([{ heading: 'Client:', verbs: CLIENT_VERBS }], ['logs', ''])
    expect(asked.map(({ url: address }) => address)).toEqual(['/api/apps?per_page=100'])
  })
})

describe('a verb about one app', () => {
  const call = async (...words: string[]) => {
    vi.stubEnv('PORTREEVE_URL', url)
    vi.stubEnv('PORTREEVE_API_KEY', 'k')
    answer = (_request, response) => response.writeHead(404).end()
    asked.length = 0
    const groups = [{ heading: 'Client:', verbs: CLIENT_VERBS }]
    const ended = await runProgram(await createProgram('1', groups, words), words).catch((error) => error)
    return [ended.exit_code, ...asked.map((request) => `${request.method} ${request.url}`)]
  }
  it.each([
    [['logs'], 'GET /api/apps/app_1'],
    [['status'], 'GET /api/apps/app_1'],
    [['open'], 'GET /api/apps/app_1'],
    [['rollback'], 'GET /api/apps/app_1'],
    [['apps', 'show'], 'GET /api/apps/app_1'],
    [['apps', 'stop'], 'POST /api/apps/app_1/stop'],
  ])('%j takes its name as an argument or as --app, and not two of them', async (words, first) => {
    for (const named of [['app_1'], ['--app', 'app_1'], ['-a', 'app_1'], ['app_1', '--app', 'app_1']])
      expect(await call(...words, ...named)).toEqual(expect.arrayContaining([3, first]))
    expect(await call(...words, 'app_1', '--app', 'app_2')).toEqual([2])
  })
})

describe('a login without a terminal', () => {
  it.each([
    [[], '--email'],
    [['--email', 'ada@example.com'], '--password-stdin'],
  ])('with %j says how what is missing can be given', async (given, option) => {
    const words = ['login', url, ...given]
    const groups = [{ heading: 'Client:', verbs: CLIENT_VERBS }]
    const program = await createProgram('1', groups, words)
    await expect(runProgram(program, words)).rejects.toMatchObject({
      exit_code: 2,
      message: expect.stringContaining(option),
    })
  })
})

describe('what a verb shows', () => {
  /** What a call prints where the server answers these paths with these data. */
  const shown = async (answers: Record<string, unknown>, ...words: string[]) =>
    (await ended(answers, ...words)).text
  /** The same, and with what it failed. */
  const ended = async (answers: Record<string, unknown>, ...words: string[]) => {
    vi.stubEnv('PORTREEVE_URL', url)
    vi.stubEnv('PORTREEVE_API_KEY', 'k')
    answer = (request, response) => {
      const path = request.url!.replace(/\?.*$/, '')
      const found = answers[`${request.method} ${request.url}`] ?? answers[path]
      const data = typeof found === 'function' ? found() : found
      response.writeHead(data === undefined ? 404 : 200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ data, total: 1, page: 1, per_page: 100, pages: 1 }))
    }
    const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
    try {
      const groups = [{ heading: 'Client:', verbs: CLIENT_VERBS }]
      const program = await createProgram('1', groups, words)
      const fault = await runProgram(program, words).catch((error) => error)
      return { text: write.mock.calls.map(([text]) => String(text)).join(''), fault }
    } finally {
      write.mockRestore()
    }
  }
  const app = {
    ...{ id: 'app_1', name: 'shop', status: 'running', url: null, source: 'image', image: 'shop:1' },
    ...{ git_url: null, branch: null, replicas: 1, latest_deployment: null, last_error: null },
    ...{ needs_redeploy: false, changed_keys: [] },
  }
  it('says of an app without instances whether it sleeps', async () => {
    const answers = { '/api/apps/app_1': app, '/api/apps/app_1/instances': [] }
    const asleep = { ...answers, '/api/apps/app_1/scaling': { status: 'asleep' } }
    expect(await shown(asleep, 'status', 'app_1')).toContain('The app is asleep')
    const scaling = { ...answers, '/api/apps/app_1/scaling': { status: 'scaling' } }
    expect(await shown(scaling, 'status', 'app_1')).not.toContain('asleep')
  })
  it('names the apps that domains lead to', async () => {
    const domain = { hostname_unicode: 'shop.example.com', status: 'active', ssl_mode: 'acme', path: '/' }
    const answers = { '/api/apps': [app], '/api/domains': [{ ...domain, app_id: 'app_1' }] }
    expect(await shown(answers, 'domains')).toMatch(/^shop\.example\.com .* shop$/m)
  })
  const deployment = {
    ...{ id: 'dpl_1', number: 4, app_id: 'app_1', status: 'live', finished_at: '2026-11-26T00:00:00Z' },
    ...{ error: null, steps: [], timings: { live_ms: 1000 }, rolled_back_to: 'dpl_0' },
  }
  it('says after a rollback that pushes do not deploy now, and how they do again', async () => {
    const of = (auto_deploy: boolean) => ({ ...app, source: 'git', auto_deploy })
    let is_live = false
    const answers = {
      '/api/apps/app_1': () => of(!is_live),
      'POST /api/apps/app_1/rollback': () => {
        is_live = true
        return deployment
      },
      '/api/deployments/dpl_1': deployment,
      '/api/deployments/dpl_1/logs': () => [],
      '/api/deployments/dpl_0': { ...deployment, number: 2, created_at: '2026-11-25T00:00:00Z' },
    }
    const told = 'Pushes do not deploy shop any more'
    expect(await shown(answers, 'rollback', 'app_1')).toMatch(
      /is live[^]*what deployment #2 of 2026-11-25T00:00:00Z brought[^]*Pushes do not deploy shop any more[^]*portreeve apps auto-deploy on --app shop\n$/,
    )
    expect(await shown(answers, 'rollback', 'app_1')).not.toContain(told)
    is_live = false
    expect(await shown(answers, 'rollback', 'app_1', '--no-wait')).toMatch(/Once it is live, pushes/)
  })
  it('shows the whole log of a deployment, also of more lines than one answer has', async () => {
    const line = (seq: number) => ({ seq, at: '', text: `line ${seq}`, source: 'build' })
    const failed = {
      ...{ ...deployment, status: 'failed' },
      error: {
        ...{ step: 'build', message: 'The build failed.', hint: 'Look at the package.' },
        log: Array.from({ length: 25 }, (_, at) => `told ${at}.`),
      },
    }
    const answers = {
      '/api/apps/app_1': { ...app, source: 'git' },
      'POST /api/apps/app_1/deploy': failed,
      '/api/deployments/dpl_1': failed,
      'GET /api/deployments/dpl_1/logs?after=0': [line(1), line(2)],
      'GET /api/deployments/dpl_1/logs?after=2': [line(3)],
      '/api/deployments/dpl_1/logs': () => [],
    }
    const { text, fault } = await ended(answers, 'deploy', '--app', 'app_1')
    expect(text).toMatch(/line 1\n[^]*line 2\n[^]*line 3\n/)
    expect(fault.message).toMatch(/failed in build: The build failed\.\n {2}told 0\.\n[^]*told 24\.\n/)
    expect(fault.message).toMatch(/Look at the package\.\nThe whole log: portreeve logs app_1 --build /)
  })
  it.each([
    ['active', 0, [], 'is active'],
    ['pending', 1, [], '203.0.113.7'],
    ['pending', 1, ['--json'], '"status": "pending"'],
  ])(
    'ends the look at a domain that is %s with %i, and shows what is to be set',
    async (is, code, as, told) => {
      const domain = {
        ...{ id: 'dom_1', hostname: 'shop.example.com', hostname_unicode: 'shop.example.com', status: is },
        dns_records: [{ type: 'A', name: 'shop.example.com', value: '203.0.113.7', ok: is === 'active' }],
        verification: { message: 'shop.example.com is not in DNS.' },
      }
      const answers = { '/api/domains': [domain], '/api/domains/verify': domain }
      const words = ['domains', 'verify', 'shop.example.com', ...as]
      const { text, fault } = await ended(answers, ...words)
      expect(fault?.exit_code ?? 0).toBe(code)
      expect(text).toContain(told)
    },
  )
  it('lists what linked databases give an app beside its own variables', async () => {
    const variable = { key: 'MODE', value: 'live', scopes: [], updated_at: '2026-11-26T00:00:00Z' }
    const linkAs = (name: string, key: string) => ({ name, links: [{ app_id: 'app_1', key }] })
    const answers = {
      '/api/apps/app_1/env': [variable],
      '/api/databases': [linkAs('shop-db', 'DATABASE_URL'), linkAs('other', 'MODE')],
    }
    const text = await shown(answers, 'env', '--app', 'app_1')
    expect(text).toMatch(/^DATABASE_URL +\*{8} +runtime +with the database shop-db$/m)
    expect(text.match(/^MODE/gm)).toHaveLength(1)
    expect(asked.some((request) => request.url!.includes('app_id=app_1'))).toBe(true)
  })
  it('turns deploying on push on and off', async () => {
    const turned = (auto_deploy: boolean) => ({ ...app, branch: 'main', auto_deploy })
    const off = { 'PUT /api/apps/app_1': turned(false) }
    expect(await shown(off, 'apps', 'auto-deploy', 'off', '--app', 'app_1')).toBe(
      'Pushes do not deploy shop.\n',
    )
    const on = { 'PUT /api/apps/app_1': turned(true) }
    expect(await shown(on, 'apps', 'auto-deploy', 'on', '--app', 'app_1')).toContain(
      'Pushes to main deploy shop.',
    )
  })
  it('takes a database from an app, lists its backups and brings one back', async () => {
    const backup = { id: 'bkp_2', status: 'succeeded', size_bytes: 5, created_at: '2026-11-26T00:00:00Z' }
    const answers = {
      'DELETE /api/databases/db_1/links/app_1': {},
      '/api/backups': [{ ...backup, id: 'bkp_3', status: 'failed' }, backup],
      'POST /api/databases/db_1/restore': { job_id: 'job_1' },
      'POST /api/backups/bkp_2/restore': { job_id: 'job_1' },
      '/api/databases': [],
    }
    const bodies: string[] = []
    const read = (request: IncomingMessage) =>
      request.method === 'POST' && request.on('data', (chunk) => bodies.push(String(chunk)))
    server.on('request', read)
    const unlinked = await shown(answers, 'db', 'unlink', 'db_1', '--app', 'app_1')
    expect(unlinked).toContain('loses the address')
    expect(await shown(answers, 'db', 'backups', 'db_1')).toMatch(/^bkp_2 +succeeded +5 /m)
    expect((await ended(answers, 'db', 'restore', 'db_1')).fault.message).toContain('--yes')
    expect(await shown(answers, 'db', 'restore', 'db_1', '--yes')).toContain('of the backup bkp_2')
    await shown(answers, 'db', 'restore', 'db_1', '--at', '2026-11-22T08:00:00Z', '--as', 'old')
    const gone = await shown(answers, 'db', 'restore', 'shop-db', '--backup', 'bkp_2')
    expect(gone).toContain('shop-db is being made of the backup bkp_2')
    expect(bodies.map((text) => JSON.parse(text))).toEqual([
      { backup_id: 'bkp_2' },
      { at: '2026-11-22T08:00:00.000Z', mode: 'new', name: 'old' },
      { mode: 'new', name: 'shop-db' },
    ])
    server.off('request', read)
  })
  it('scales an app, and puts it to sleep', async () => {
    const answers = { 'PUT /api/apps/app_1/scaling': {} }
    expect(await shown(answers, 'apps', 'scale', '3', '--app', 'app_1')).toContain('Scaling to 3')
    expect(await shown(answers, 'apps', 'scale', '0', '--app', 'app_1')).toContain('goes to sleep')
  })
  it('names the help of the very command that was called wrongly', async () => {
    const wrong = async (...words: string[]) => (await ended({}, ...words)).fault.message
    expect(await wrong('db', 'link', '--nothing')).toMatch(/Try portreeve db link --help\.$/)
    expect(await wrong('nothing')).toMatch(/Try portreeve --help\.$/)
  })
})

describe('what a server refuses, or no Portreeve answers', () => {
  const call = async (...words: string[]) => {
    vi.stubEnv('PORTREEVE_URL', url)
    vi.stubEnv('PORTREEVE_API_KEY', 'k')
    const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
    const told = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
    try {
      const program = await createProgram('1', [{ heading: 'Client:', verbs: CLIENT_VERBS }], words)
      const fault = await runProgram(program, words).catch((error) => error)
      return { fault, stderr: told.mock.calls.map(([text]) => String(text)).join('') }
    } finally {
      write.mockRestore()
      told.mockRestore()
    }
  }
  const say = (response: ServerResponse, status: number, body: unknown) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  it('ends a log that is followed once nobody may hear it, and says why', async () => {
    let is_over = false
    server.once('upgrade', (_request, socket) => {
      is_over = true
      socket.destroy()
    })
    answer = (request, response) => {
      if (is_over) return say(response, 404, { error: { code: 'NOT_FOUND', message: 'It is gone.' } })
      return say(response, 200, { data: request.url!.includes('/logs') ? [] : { id: 'app_1' } })
    }
    expect((await call('logs', 'app_1', '--follow')).fault).toMatchObject({
      exit_code: 3,
      message: 'It is gone.',
    })
  })
  it('says of a command that is left with Ctrl-C that it goes on, and until when', async () => {
    // As the system does it; it is never answered.
    answer = () => void process.listeners('SIGINT').at(-1)!('SIGINT')
    const { fault } = await call('exec', '--app', 'app_1', '--timeout', '90', '--', 'npm', 'run', 'migrate')
    expect(fault).toMatchObject({
      exit_code: 130,
      message: 'The command goes on in its container, for 90 s in all at most.',
    })
  })
  it('says which key is not taken, where it was none of a login', async () => {
    answer = (_request, response) => say(response, 401, { error: { code: 'UNAUTHORIZED', message: 'No.' } })
    const { fault } = await call('apps')
    expect(fault).toMatchObject({ exit_code: 4 })
    expect(fault.message).toContain('PORTREEVE_API_KEY')
    expect(fault.message).not.toContain('The login')
  })
  it('says of a page that it is no answer of Portreeve', async () => {
    answer = (_request, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>')
    const { fault } = await call('apps')
    expect(fault).toMatchObject({ exit_code: 1 })
    expect(fault.message).toContain(`${url} is no Portreeve`)
  })
})
