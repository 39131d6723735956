import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BUSYBOX_IMAGE, ensureBusyboxImage } from '#test/support/engine-images'
import { ADMIN, eventually, nodeApp, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { ROOT } from '#test/support/routes'

const program = join(ROOT, '.output/portreeve-client.mjs')
const home = mkdtempSync(join(tmpdir(), 'ptr-home-'))
const folder = join(home, 'Small Shop')
let portreeve: Portreeve

interface Ended {
  code: number | null
  stdout: string
  stderr: string
}
/** The client as a person calls it, in the folder of the app. */
function start(
  args: string[],
  { input = '', env = {} }: { input?: string; env?: Record<string, string> } = {},
) {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: home, ...env },
  })
  const ended: Ended = { code: null, stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => void (ended.stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => void (ended.stderr += chunk.toString()))
  child.stdin.end(input)
  const done = new Promise<Ended>((resolve) => child.on('close', (code) => resolve({ ...ended, code })))
  return { child, ended, done }
}
const run = (args: string[], options?: Parameters<typeof start>[1]) => start(args, options).done
const json = async (...args: string[]) => {
  const { code, stdout, stderr } = await run([...args, '--json'])
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}
const write = (files: Record<string, string>) => {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
}

beforeAll(async () => {
  mkdirSync(folder)
  await ensureBusyboxImage()
  portreeve = await startPortreeve()
})
afterAll(async () => {
  await portreeve?.dispose()
  rmSync(home, { recursive: true, force: true })
})

describe('the client', () => {
  it('keeps a login in a file for its user alone, and says with its exit code why a call did not work', async () => {
    expect((await run(['apps'])).code).toBe(4)
    expect(
      (await run(['login', 'http://127.0.0.1:1', '--email', 'x@y.z', '--password-stdin'], { input: 'x' }))
        .code,
    ).toBe(6)
    const wrong = await run(['login', portreeve.url, '--email', ADMIN.email, '--password-stdin'], {
      input: 'wrong',
    })
    expect([wrong.code, wrong.stderr]).toEqual([4, expect.stringContaining('portreeve: ')])
    const right = await run(
      ['login', portreeve.url, '--name', 'here', '--email', ADMIN.email, '--password-stdin'],
      { input: `${ADMIN.password}\n` },
    )
    expect(right).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining(ADMIN.email) })
    const file = join(home, '.config/portreeve/credentials.json')
    expect([statSync(file).mode & 0o777, readFileSync(file, 'utf8').includes(ADMIN.password)]).toEqual([
      0o600,
      false,
    ])
    expect(await json('context')).toMatchObject([{ name: 'here', current: true, url: portreeve.url }])
    expect((await run(['apps', 'show', 'nothing-here'])).code).toBe(3)
    expect((await run(['apps', '--colour'])).code).toBe(2)
    expect((await run(['create', 'NOT A NAME', '--image', 'x'])).code).toBe(5)
  })
  it('deploys a folder under its name: what git would ignore stays, progress is shown, and the app answers', async () => {
    write({
      ...nodeApp('one'),
      '.gitignore': 'secret.txt\nnode_modules/\n',
      'secret.txt': 'not to be sent',
    })
    const { code, stdout, stderr } = await run(['deploy'])
    expect([code, stderr], stdout).toEqual([0, ''])
    expect(stdout).toMatch(/Created the app small-shop\.\nSending 3 files/)
    expect(stdout).toMatch(/✓ build [\d.]+ s\n[^]*✓ switch [^]*Deployment #1 is live after [\d.]+ s: http/)
    expect(await portreeve.visit('small-shop.apps.test')).toMatchObject({ status: 200, body: 'one' })
    const files = await run(['exec', '--', 'ls', '-a'])
    expect([files.code, files.stdout.includes('server.js'), files.stdout.includes('secret.txt')]).toEqual([
      0,
      true,
      false,
    ])
  })
  it('ends exec with the code of the command, and its output as it was', async () => {
    expect(await run(['exec', '--', 'node', '-e', 'console.log("a  b"); process.exit(7)'])).toMatchObject({
      code: 7,
      stdout: 'a  b\n',
    })
  })
  it('sets variables, deploys with them, follows the log, and rolls back', async () => {
    expect((await run(['env', 'set', 'GREETING=hello', 'API_TOKEN=-'], { input: 's3cret-value' })).code).toBe(
      0,
    )
    const listed = await json('env')
    expect(listed.map((one: any) => [one.key, one.value])).toEqual([
      ['API_TOKEN', '********'],
      ['GREETING', 'hello'],
    ])
    write(nodeApp('two'))
    const logs = start(['logs', '--follow', '--lines', '1'])
    expect((await json('deploy')).status).toBe('live')
    expect((await portreeve.visit('small-shop.apps.test')).body).toBe('two')
    await eventually(
      'the log of the new instance',
      () => logs.ended.stdout.includes('listening two') || undefined,
    )
    logs.child.kill('SIGINT')
    await logs.done
    expect((await run(['exec', '--', 'printenv', 'GREETING', 'API_TOKEN'])).stdout).toContain('hello')
    const back = await run(['rollback', 'small-shop'])
    expect([back.code, (await portreeve.visit('small-shop.apps.test')).body], back.stderr).toEqual([0, 'one'])
  })
  it('fails with the reason when a deployment does, and the old release serves on', async () => {
    write({ 'server.js': 'console.log("cannot start"); process.exit(1)' })
    const { code, stderr } = await run(['deploy'])
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/The deployment failed in verify[^]*cannot start/),
    ])
    expect((await portreeve.visit('small-shop.apps.test')).body).toBe('one')
  })
  it('says how the server and an app are, and completes what is there', async () => {
    expect(await json('status')).toMatchObject({ context: 'here', apps: 1, ingress: { running: true } })
    expect(await json('status', 'small-shop')).toMatchObject({
      status: 'running',
      instances: [{ process: 'web' }],
    })
    expect((await run(['domains'])).stdout).toContain('small-shop.apps.test')
    const complete = async (...words: string[]) =>
      (await run(['complete', '--', ...words])).stdout.split('\n').filter(Boolean)
    expect(await complete('de')).toEqual(['deploy'])
    expect(await complete('logs', '')).toEqual(['small-shop'])
    expect(await complete('env', 's')).toEqual(['set'])
    expect(await complete('deploy', '--app', 'sm')).toEqual(['small-shop'])
    expect(await complete('completion', '')).toEqual(['bash', 'zsh', 'fish'])
    expect(await complete('context', 'use', '')).toEqual(['here'])
  })
  it('works without a file where the environment names the server and a key', async () => {
    const key = (await portreeve.call('POST', '/api/auth/api-keys', { name: 'CI', scope: 'read' })).body.data
      .key
    const env = { PORTREEVE_URL: portreeve.url, PORTREEVE_API_KEY: key, HOME: '/nonexistent' }
    expect((await run(['apps'], { env })).stdout).toContain('small-shop')
    expect((await run(['apps', 'stop', 'small-shop'], { env })).code).toBe(4)
  })
  it('makes a project as portreeve.yaml says: a plan, the deed, nothing to do after it, and the same file from what runs', async () => {
    const file = (text: string) => `
project: as-code
apps:
  as-code-web:
    dockerfile: |
      FROM ${BUSYBOX_IMAGE}
      CMD mkdir -p /www && echo "$GREETING $APP_TOKEN" > /www/index.html && exec httpd -f -p 8080 -h /www
    port: 8080
    variables: { GREETING: ${text}, APP_TOKEN: { secret: true } }
    domains: [as-code.example.com]
    cron: { tidy: { expression: '0 2 * * *', command: 'true' } }
backups:
  nightly: { target: app, of: as-code-web, cron: '0 2 * * *' }
`
    write({ 'portreeve.yaml': file('hello'), 'secrets.env': 'APP_TOKEN=canary-of-the-file\n' })
    const planned = await run(['plan'])
    expect(planned.stdout).toContain('+ project as-code')
    expect(planned.stdout).toContain('+ app as-code-web')
    expect((await run(['plan', '--check'])).code).toBe(1)
    const without = await run(['apply', '--yes'])
    expect([without.code, without.stderr]).toEqual([5, expect.stringContaining('APP_TOKEN of as-code-web')])
    const made = await run(['apply', '--yes', '--secrets', 'secrets.env'])
    expect([made.code, made.stderr], made.stdout).toEqual([0, ''])
    expect(await portreeve.visit('as-code-web.apps.test')).toMatchObject({
      status: 200,
      body: 'hello canary-of-the-file\n',
    })
    expect(await json('apply', '--yes')).toEqual([])
    expect((await run(['plan', '--check', '--prune'])).code).toBe(0)
    write({ 'portreeve.yaml': file('good day') })
    const changed = await run(['apply', '--yes'])
    expect([changed.code, changed.stderr], changed.stdout).toEqual([0, ''])
    expect(changed.stdout).toContain('value: "hello" → "good day"')
    expect(changed.stdout).toContain('Deploying as-code-web.')
    expect((await portreeve.visit('as-code-web.apps.test')).body).toMatch(/^good day/)
    const exported = await run(['export', '--project', 'as-code'])
    expect(exported.stdout + made.stdout + changed.stdout).not.toContain('canary')
    write({ 'portreeve.yaml': exported.stdout })
    expect((await run(['plan', '--check', '--prune'])).stdout).toContain('Nothing to do')
    const wrong = await run(['plan', '--file', '-'], { input: 'apps: { web: { imagee: x } }' })
    expect([wrong.code, wrong.stderr]).toEqual([5, expect.stringContaining('Did you mean image?')])
    rmSync(join(folder, 'portreeve.yaml'))
    rmSync(join(folder, 'secrets.env'))
  }, 400_000)
  it('deletes an app only when it is sure, and forgets the login', async () => {
    expect((await run(['apps', 'delete', 'small-shop'])).code).toBe(2)
    expect((await run(['apps', 'delete', 'small-shop', '--yes'])).code).toBe(0)
    expect((await run(['logout'])).code).toBe(0)
    expect((await run(['apps'])).code).toBe(4)
    expect((await portreeve.call('GET', '/api/auth/me')).status).toBe(200)
  })
})
