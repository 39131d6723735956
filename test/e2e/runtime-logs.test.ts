import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type GitServer, startGitServer } from '#test/support/git-server'
import { docker, eventually, nodeApp, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { listen } from '#test/support/socket'
import { deployed, redeployed } from './support/deployed.ts'

interface Line {
  seq: number
  text: string
  level: string
  process: string
  deployment_id: string | null
}
/** Half of the longest line: whoever kept it whole would need all of it, and more. */
const MOST_GROWTH_BYTES = 128 * 1024 * 1024

let forge: GitServer
let portreeve: Portreeve
beforeAll(async () => {
  forge = await startGitServer()
  portreeve = await startPortreeve({ env: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: forge.host } })
})
afterAll(async () => {
  await portreeve?.dispose()
  await forge?.close()
})

/** A name that no attempt of a test before has taken. */
let names = 0
const fresh = (name: string) => `${name}-${(names += 1)}`

const read = async (path: string, query = ''): Promise<Line[]> => {
  const { status, body } = await portreeve.call('GET', `${path}/logs?tail=5000${query}`)
  expect(status, JSON.stringify(body)).toBe(200)
  return body.data
}
const until = (path: string, text: string) =>
  eventually(text, async () => (await read(path)).find((line) => line.text.includes(text)), 90_000)
/** A server that says which version it is, and on request that something is wrong. */
const talking = (version: string) => ({
  ...nodeApp(version),
  'server.js': `
console.log('hello of ${version}')
process.on('SIGTERM', () => { console.log('goodbye of ${version}'); process.exit(0) })
require('node:http').createServer((request, response) => {
  if (request.url === '/warn') console.error('WARN visited by somebody')
  if (request.url === '/flood') for (let n = 0; n < 30000; n++) console.log('flood ' + n + ' ' + 'x'.repeat(1000))
  if (request.url === '/bytes') process.stdout.write(require('node:crypto').randomBytes(1 << 20))
  if (request.url === '/line') {
    const part = 'y'.repeat(1 << 20)
    let left = 256
    const more = () => {
      while (left-- > 0) if (!process.stdout.write(part)) return process.stdout.once('drain', more)
      console.log('\\nafter the line')
    }
    more()
  }
  if (request.url === '/crash') { console.error('last words of ${version}'); process.exit(9) }
  response.end('${version}')
}).listen(process.env.PORT)
`,
})

describe('what instances print', () => {
  it('is kept over redeploy, crash, stop and kill -9 of Portreeve, each line once, and followed from any line', async () => {
    const repository = forge.repository('talk')
    repository.commit(talking('one'))
    const { id, url } = await deployed(portreeve, { name: 'talk', git_url: repository.url })
    const path = `/api/apps/${id}`
    const host = new URL(url).hostname
    await until(path, 'hello of one')
    await portreeve.visit(host, '/warn')
    await until(path, 'WARN visited')
    repository.commit(talking('two'))
    const second = await redeployed(portreeve, id)
    await until(path, 'goodbye of one')
    expect((await read(path, `&deployment=${second.id}`)).map(({ text }) => text)).toEqual(['hello of two'])
    expect((await read(path, '&level=warn')).map(({ text }) => text)).toEqual(['WARN visited by somebody'])

    await portreeve.kill()
    await portreeve.visit(host, '/warn')
    await portreeve.start()
    await eventually('both warnings', async () => (await read(path, '&q=visited')).length === 2 || undefined)

    await portreeve.visit(host, '/crash').catch(() => undefined)
    await until(path, 'last words of two')
    await eventually(
      'the app to be back',
      async () => (await portreeve.visit(host)).status === 200 || undefined,
    )
    const { body } = await portreeve.call('POST', `${path}/stop`)
    expect(body.data.id ?? body.data.app_id).toBeTruthy()
    // Asked for while its containers are on their way out, the log never fails.
    await eventually('it to stop', async () => {
      await read(path)
      return (await portreeve.call('GET', path)).body.data.status === 'stopped' || undefined
    })
    const lines = await read(path)
    expect(
      docker('ps', '-aq', '--filter', `label=portreeve.app=${id}`).trim().split('\n').filter(Boolean),
    ).toHaveLength(
      docker('ps', '-q', '--filter', `label=portreeve.app=${id}`).trim().split('\n').filter(Boolean).length,
    )
    const count = (text: string) => lines.filter((line) => line.text.includes(text)).length
    expect([count('hello of one'), count('last words of two'), count('visited')]).toEqual([1, 1, 2])
    const seqs = lines.map(({ seq }) => seq)
    expect(new Set(seqs).size).toBe(seqs.length)
    expect(lines.every(({ process, deployment_id }) => process === 'web' && deployment_id)).toBe(true)

    const listener = await listen(portreeve.url, { authorization: `Bearer ${portreeve.token()}` })
    listener.say({ type: 'subscribe', channel: `apps/${id}/logs`, after: 1 })
    await listener.until(({ data }) => data.text === lines.at(-1)!.text)
    const heard = listener.heard.filter(({ type }) => type === 'log').map(({ cursor }) => Number(cursor))
    expect(heard).toEqual([...seqs].sort((a, b) => a - b).filter((seq) => seq > 1))
    listener.socket.close()
  })

  it('of a first deployment that fails is there, too', async () => {
    const repository = forge.repository('mute')
    repository.commit({
      ...nodeApp('x'),
      'server.js': "console.error('Error: no such table'); process.exit(3)",
    })
    const { body } = await portreeve.call('POST', '/api/apps', { name: 'mute', git_url: repository.url })
    await portreeve.untilApp(body.data.id, ['failed'])
    const [line] = await read(`/api/apps/${body.data.id}`, '&q=no%20such%20table')
    expect(line).toMatchObject({
      level: 'error',
      deployment_id: body.data.latest_deployment?.id ?? expect.any(String),
    })
  })

  it('without end costs others nothing: what is kept is bounded, and the API answers', async () => {
    await portreeve.call('PUT', '/api/settings', { runtime_log_max_bytes: 2 * 1024 ** 2 })
    const name = fresh('flood')
    const repository = forge.repository(name)
    repository.commit(talking(name))
    const { id, url } = await deployed(portreeve, { name, git_url: repository.url })
    const path = `/api/apps/${id}`
    await portreeve.visit(new URL(url).hostname, '/flood')
    await until(path, 'flood 29999')
    expect((await portreeve.call('GET', '/api/system/disk')).body.data.logs.runtime_bytes).toBeLessThan(
      8 * 1024 ** 2,
    )
  })

  it('as one line of 256 MiB, or as bytes that are no text, is cut and cleaned: memory stays bounded, others are kept live (F36)', async () => {
    const made = await Promise.all(
      [fresh('line'), fresh('other')].map((name) => {
        const repository = forge.repository(name)
        repository.commit(talking(name))
        return deployed(portreeve, { name, git_url: repository.url })
      }),
    )
    const [line, other] = made.map(({ id, url }) => ({
      path: `/api/apps/${id}`,
      host: new URL(url).hostname,
    }))
    /** Few lines at a time: there are thousands of bytes that are no text. */
    const found = async (path: string, word: string): Promise<Line[]> =>
      (await portreeve.call('GET', `${path}/logs?tail=100&q=${encodeURIComponent(word)}`)).body.data
    const kept = (path: string, word: string) =>
      eventually(word, async () => (await found(path, word))[0], 90_000)
    const rss = () =>
      Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${portreeve.pid()}/status`, 'utf8'))![1]) * 1024
    await portreeve.visit(line!.host, '/bytes')
    const before = rss()
    let most = before
    const watching = setInterval(() => {
      most = Math.max(most, rss())
    }, 50)
    await portreeve.visit(line!.host, '/line')
    await portreeve.visit(other!.host, '/warn')
    await kept(other!.path, 'WARN visited')
    await kept(line!.path, 'after the line')
    clearInterval(watching)
    const [cut] = await found(line!.path, 'yyyy')
    expect([cut!.text.length > 8000, cut!.text.length < 10_000]).toEqual([true, true])
    const { text } = await portreeve.call('GET', `${line!.path}/logs?tail=300`).then(({ body }) => ({
      text: (body.data as Line[]).map((one) => one.text).join(''),
    }))
    expect(text).not.toMatch(/[\u0000-\u0008\u000b-\u001a\u007f-\u009f]/)
    expect(most - before).toBeLessThan(MOST_GROWTH_BYTES)
  })

  it('of a database is kept over a restart, without its password', async () => {
    const { body } = await portreeve.call('POST', '/api/databases', { name: 'store', engine: 'redis' })
    const path = `/api/databases/${body.data.id}`
    const running = () =>
      eventually(
        'it to run',
        async () => (await portreeve.call('GET', path)).body.data.status === 'running' || undefined,
      )
    await running()
    await until(path, 'Ready to accept connections')
    expect((await portreeve.call('POST', `${path}/restart`)).status).toBe(200)
    await eventually(
      'two starts',
      async () => (await read(path, '&q=Ready%20to%20accept')).length === 2 || undefined,
    )
    await running()
  })
})
