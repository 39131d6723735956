import { beforeAll, describe, expect, it } from 'vitest'
import type { GitServer } from '#test/support/git-server'
import { docker, type Portreeve } from '#test/support/portreeve'
import { deployed, redeployed } from './support/deployed.ts'
import { useForge } from './support/forge.ts'

const BUILD_SECRET = "b'uild harbour/é $HOME `id` 7391"
const RUN_SECRET = 'run harbour/ü & more 8264'
const MULTI_LINE = '-----BEGIN KEY-----\nMIIBIjANBgkqhkiG9w0\n-----END KEY-----\n'

/** Prints a value as it is, in two halves, in base64 behind a name, and encoded for addresses. */
const PRINTER = `
const print = (value) => new Promise((done) => {
  console.log('whole ' + value)
  console.log('base64 ' + Buffer.from('ada:' + value).toString('base64'))
  console.log('url ' + encodeURIComponent(value))
  const half = Math.floor(value.length / 2)
  process.stdout.write('halves ' + value.slice(0, half))
  setTimeout(() => { process.stdout.write(value.slice(half) + '\\nprinted\\n'); done() }, 60)
})
module.exports = print
if (require.main === module) print(process.env[process.argv[2]])
`
const FILES = {
  'package.json': JSON.stringify({
    name: 'vars',
    version: '1.0.0',
    scripts: { build: 'node build.js', start: 'node server.js' },
  }),
  'print.js': PRINTER,
  'build.js': `
const { createHash } = require('node:crypto')
const { BUILD_TOKEN, NEXT_PUBLIC_TITLE, RUN_TOKEN } = process.env
require('node:fs').writeFileSync('built.json', JSON.stringify({
  title: NEXT_PUBLIC_TITLE,
  digest: createHash('sha256').update(BUILD_TOKEN ?? '').digest('hex'),
  run: RUN_TOKEN === undefined,
}))
require('./print.js')(BUILD_TOKEN ?? 'no token')
`,
  'server.js': `
const built = require('./built.json')
require('./print.js')(process.env.RUN_TOKEN ?? 'no token')
require('node:http').createServer((_, answer) => answer.end(JSON.stringify({ built, env: process.env }))).listen(process.env.PORT)
`,
}

const server = useForge()
let portreeve: Portreeve
let forge: GitServer
let app_id: string
let first: string
const call = async (method: string, path: string, body?: unknown) => {
  const answer = await portreeve.call(method, path, body)
  expect([200, 201], JSON.stringify(answer.body)).toContain(answer.status)
  return answer.body.data
}
const visit = async () => JSON.parse((await portreeve.visit('vars.apps.test')).body)
const logOf = async (id: string): Promise<string> =>
  (await call('GET', `/api/deployments/${id}/logs`)).map(({ text }: { text: string }) => text).join('\n')
/** The lines that the printer printed, in which nothing of a value may be. */
const PRINTED = ['whole [redacted]', 'base64 ', 'url [redacted]', 'halves [redacted]', 'printed']

beforeAll(async () => {
  ;({ portreeve, forge } = server)
  const repository = forge.repository('vars')
  repository.commit(FILES)
  app_id = (await deployed(portreeve, { name: 'vars', git_url: repository.url })).id
  const env = `/api/apps/${app_id}/env`
  await call('POST', env, { key: 'BUILD_TOKEN', value: BUILD_SECRET, scopes: ['build'] })
  await call('POST', env, { key: 'NEXT_PUBLIC_TITLE', value: 'two "words"' })
  await call('POST', env, { key: 'RUN_TOKEN', value: RUN_SECRET, scopes: ['runtime'] })
  await call('POST', env, { key: 'MULTI', value: MULTI_LINE })
  await call('PUT', `/api/apps/${app_id}`, { build: { release_command: 'node print.js RUN_TOKEN' } })
  first = (await redeployed(portreeve, app_id)).id
  expect((await call('GET', `/api/deployments/${first}`)).status).toBe('live')
})

describe('variables of an app on the real engine', () => {
  it('reach the build and the running instance, each where it was meant for, byte for byte', async () => {
    const { built, env } = await visit()
    const { createHash } = await import('node:crypto')
    expect(built).toEqual({
      title: 'two "words"',
      digest: createHash('sha256').update(BUILD_SECRET).digest('hex'),
      run: true,
    })
    expect(env).toMatchObject({ RUN_TOKEN: RUN_SECRET, MULTI: MULTI_LINE, NEXT_PUBLIC_TITLE: 'two "words"' })
    expect(env).not.toHaveProperty('BUILD_TOKEN')
    expect(env).not.toHaveProperty('PORTREEVE_BUILD_SECRETS')
  })
  it('leave no secret in image, history or labels, and only runtime values in the container', async () => {
    const { image } = await call('GET', `/api/deployments/${first}`)
    const ids = docker('ps', '-q', '--filter', `label=portreeve.app=${app_id}`).trim().split('\n')
    const container = JSON.parse(docker('inspect', ids[0]!))[0]
    const { Env, ...config } = container.Config
    expect(Env).toContain(`RUN_TOKEN=${RUN_SECRET}`)
    const traces = [
      docker('inspect', image),
      docker('history', '--no-trunc', '--format', '{{json .}}', image),
      JSON.stringify([{ ...container, Config: config }]),
    ].join('\n')
    for (const part of ['harbour', Buffer.from(BUILD_SECRET).toString('base64').slice(4, 24)])
      expect(traces).not.toContain(part)
    expect(JSON.stringify(Env)).not.toContain('uild harbour')
    expect(
      docker(
        'run',
        '--rm',
        '--entrypoint',
        '/bin/sh',
        image,
        '-c',
        'grep -rl "uild harbour" /app /run /etc /tmp 2>/dev/null; true',
      ),
    ).toBe('')
  })
  it('are masked in the log of build and release, of the instances and of a one-off command, in halves and encodings too', async () => {
    const build = await logOf(first)
    for (const line of PRINTED) expect(build.split(line).length - 1, line).toBeGreaterThanOrEqual(2)
    const runtime = await call('GET', `/api/apps/${app_id}/logs`)
    const printed = runtime.map(({ text }: { text: string }) => text).join('\n')
    for (const line of PRINTED) expect(printed).toContain(line)
    const exec = await call('POST', `/api/apps/${app_id}/exec`, {
      command: ['node', 'print.js', 'RUN_TOKEN'],
    })
    for (const line of PRINTED) expect(exec.output).toContain(line)
    for (const log of [build, printed, exec.output, portreeve.output()])
      for (const value of [BUILD_SECRET, RUN_SECRET])
        for (const form of [
          'harbour',
          encodeURIComponent(value),
          Buffer.from(`ada:${value}`).toString('base64').slice(8, -8),
        ])
          expect(log).not.toContain(form)
  })
  it('come back with a rollback', async () => {
    await call('PUT', `/api/apps/${app_id}/env/RUN_TOKEN`, { value: 'another value altogether' })
    await call('DELETE', `/api/apps/${app_id}/env/MULTI`)
    expect((await call('GET', `/api/apps/${app_id}`)).changed_keys).toEqual(['env.MULTI', 'env.RUN_TOKEN'])
    await redeployed(portreeve, app_id)
    expect((await visit()).env).toMatchObject({ RUN_TOKEN: 'another value altogether' })
    const { id } = await call('POST', `/api/apps/${app_id}/rollback`, { deployment_id: first })
    expect(await portreeve.untilDeployment(id)).toMatchObject({ status: 'live' })
    expect((await visit()).env).toMatchObject({ RUN_TOKEN: RUN_SECRET, MULTI: MULTI_LINE })
  })
})
