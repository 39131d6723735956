import { execFileSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { GitServer } from '#test/support/git-server'
import { docker, eventually, nodeApp, type Portreeve } from '#test/support/portreeve'
import { deployed, redeployed } from './support/deployed.ts'
import { useForge } from './support/forge.ts'

const server = useForge()
let portreeve: Portreeve
let forge: GitServer
beforeAll(() => {
  ;({ portreeve, forge } = server)
})

describe('from a Git URL to a running app', () => {
  it('clones, detects, builds and serves a Node app at its domain, and a push goes live by a second deployment', async () => {
    const repository = forge.repository('shop')
    const sha = repository.commit(nodeApp('one'), 'first')
    const plan = await portreeve.call('POST', '/api/apps/detect', { git_url: repository.url })
    expect(plan.body.data).toMatchObject({ stack: 'node', package_manager: 'npm' })
    const created = await portreeve.call('POST', '/api/apps', {
      name: 'shop',
      git_url: repository.url,
      branch: 'main',
      soak_seconds: 1,
    })
    expect(created.body.data).toMatchObject({ status: 'building', domain: 'shop.apps.test' })
    const { id } = created.body.data
    await portreeve.untilApp(id, 'running')
    expect(await portreeve.visit('shop.apps.test')).toEqual({ status: 200, body: 'one' })
    const app = (await portreeve.call('GET', `/api/apps/${id}`)).body.data
    const first = await portreeve.untilDeployment(app.live_deployment_id)
    expect(first).toMatchObject({
      status: 'live',
      commit: { sha, message: 'first' },
      plan: { stack: 'node' },
    })
    expect(first.steps.map((step: { status: string }) => step.status)).toEqual([
      'succeeded',
      'succeeded',
      'succeeded',
      'skipped',
      'succeeded',
      'succeeded',
      'succeeded',
      'succeeded',
      'succeeded',
    ])
    const log = (await portreeve.call('GET', `/api/apps/${id}/logs?type=build&tail=5000`)).body.data
    expect(log.map((line: { text: string }) => line.text).join('\n')).toContain('Detected node')

    repository.commit(nodeApp('two'), 'second')
    expect(await redeployed(portreeve, id)).toMatchObject({
      status: 'live',
      number: 2,
      commit: { message: 'second' },
    })
    expect((await portreeve.visit('shop.apps.test')).body).toBe('two')
    expect((await portreeve.call('GET', `/api/apps/${id}/instances`)).body.data).toHaveLength(1)
    await eventually('The runtime log', async () =>
      ((await portreeve.call('GET', `/api/apps/${id}/logs`)).body.data as { text: string }[]).find(
        (line) => line.text === 'listening two',
      ),
    )

    const rollback = await portreeve.call('POST', `/api/apps/${id}/rollback`)
    expect(await portreeve.untilDeployment(rollback.body.data.id)).toMatchObject({
      status: 'live',
      trigger: 'rollback',
    })
    expect((await portreeve.visit('shop.apps.test')).body).toBe('one')

    await portreeve.call('PUT', `/api/apps/${id}`, { soak_seconds: 300 })
    const soaking = (await portreeve.call('POST', `/api/apps/${id}/restart`)).body.data.id
    await eventually(
      'The new instances having the traffic',
      async () =>
        (await portreeve.call('GET', `/api/deployments/${soaking}`)).body.data.status === 'live' || undefined,
    )
    expect((await portreeve.call('POST', `/api/apps/${id}/stop`)).status).toBe(200)
    expect(await portreeve.untilApp(id, 'stopped')).toMatchObject({ live_deployment_id: soaking })
    expect((await portreeve.visit('shop.apps.test')).status).toBe(503)
    // Somebody cleans up on the machine: the start makes the image again, from the commit that was live.
    const { image } = (await portreeve.call('GET', `/api/deployments/${soaking}`)).body.data
    docker('rmi', '--force', image)
    expect((await portreeve.call('POST', `/api/apps/${id}/start`)).body.data).toMatchObject({
      status: 'starting',
      job_id: expect.stringMatching(/^job_/),
    })
    await portreeve.untilApp(id, 'running')
    expect((await portreeve.visit('shop.apps.test')).body).toBe('one')

    const exec = await portreeve.call('POST', `/api/apps/${id}/exec`, {
      command: ['node', '-p', '6*7'],
    })
    expect(exec.body.data).toMatchObject({ exit_code: 0, output: '42\n' })
    const failing = await portreeve.call('POST', `/api/apps/${id}/exec`, {
      command: 'echo $PORT; exit 3',
    })
    expect(failing.body.data).toMatchObject({ exit_code: 3, output: `${first.plan.port}\n` })

    await portreeve.call('POST', `/api/apps/${id}/stop`)
    await portreeve.untilApp(id, 'stopped')
    expect((await portreeve.visit('shop.apps.test')).status).toBe(503)
    await portreeve.call('POST', `/api/apps/${id}/start`)
    await portreeve.untilApp(id, 'running')
    expect((await portreeve.visit('shop.apps.test')).status).toBe(200)

    expect((await portreeve.call('DELETE', `/api/apps/${id}`)).body).toMatchObject({
      data: { id, deleted: true, final_backup_id: expect.stringMatching(/^bkp_/) },
    })
    await eventually('The app being gone', async () =>
      (await portreeve.call('GET', `/api/apps/${id}`)).status === 404 ? true : undefined,
    )
    expect((await portreeve.visit('shop.apps.test')).status).toBe(404)
    expect(docker('ps', '-aq', '--filter', `label=portreeve.app=${id}`)).toBe('')
    expect(docker('images', '-q', '--filter', `label=portreeve.app=${id}`)).toBe('')
  })

  it('deploys an inline Dockerfile, an image and an uploaded folder', async () => {
    await deployed(portreeve, {
      name: 'inline',
      soak_seconds: 1,
      dockerfile:
        'FROM node:22-slim\nEXPOSE 8080\nUSER node\nCMD ["node", "-e", "require(\'http\').createServer((q,s)=>s.end(\'inline\')).listen(8080)"]',
    })
    expect((await portreeve.visit('inline.apps.test')).body).toBe('inline')
    const uploaded = (
      await portreeve.call('POST', '/api/apps', {
        name: 'packed',
        source: 'upload',
        soak_seconds: 1,
      })
    ).body.data
    expect(uploaded.status).toBe('stopped')
    const folder = mkdtempSync(join(tmpdir(), 'upload-'))
    for (const [name, text] of Object.entries(nodeApp('packed'))) writeFileSync(join(folder, name), text)
    const archive = execFileSync('tar', ['-C', folder, '-cz', '.'])
    const upload = await portreeve.call('POST', `/api/apps/${uploaded.id}/upload`, new Uint8Array(archive), {
      'content-type': 'application/gzip',
    })
    expect(upload.status, JSON.stringify(upload.body)).toBe(201)
    expect(await portreeve.untilDeployment(upload.body.data.id)).toMatchObject({
      status: 'live',
      error: null,
    })
    expect((await portreeve.visit('packed.apps.test')).body).toBe('packed')
    await deployed(portreeve, {
      name: 'web',
      soak_seconds: 1,
      image: 'nginx:stable',
      health_check: { path: '/' },
    })
    expect((await portreeve.visit('web.apps.test')).status).toBe(200)
  })

  it('moves an uploaded app to another project without a build: it serves on, in the network of that project alone', async () => {
    const { id } = (
      await portreeve.call('POST', '/api/apps', {
        name: 'mover',
        source: 'upload',
        soak_seconds: 0,
      })
    ).body.data
    const folder = mkdtempSync(join(tmpdir(), 'upload-'))
    for (const [name, text] of Object.entries(nodeApp('moved'))) writeFileSync(join(folder, name), text)
    const upload = await portreeve.call(
      'POST',
      `/api/apps/${id}/upload`,
      new Uint8Array(execFileSync('tar', ['-C', folder, '-cz', '.'])),
      { 'content-type': 'application/gzip' },
    )
    const first = await portreeve.untilDeployment(upload.body.data.id)
    const project_id: string = (await portreeve.call('POST', '/api/projects', { name: 'Elsewhere' })).body
      .data.id
    expect((await portreeve.call('POST', `/api/apps/${id}/move`, { project_id })).body.data).toMatchObject({
      project_id,
      status: 'running',
    })
    const { latest_deployment } = (await portreeve.call('GET', `/api/apps/${id}`)).body.data
    expect(await portreeve.untilDeployment(latest_deployment.id)).toMatchObject({
      trigger: 'restart',
      status: 'live',
      image: first.image,
    })
    const containers = docker('ps', '-q', '--filter', `label=portreeve.app=${id}`).split('\n')
    expect(containers).toHaveLength(1)
    expect(
      docker(
        'inspect',
        '--format',
        '{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{end}}',
        containers[0]!,
      ),
    ).toBe(`ptr-${project_id.replace('prj_', '')}`)
    expect((await portreeve.visit('mover.apps.test')).body).toBe('moved')
  })

  it('carries WebSockets and streams through the edge', async () => {
    const repository = forge.repository('stream')
    repository.commit({
      'package.json': '{"name":"stream","scripts":{"start":"node server.js"}}',
      'server.js': `const http = require('node:http')
const server = http.createServer((request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write('data: first\\n\\n')
  request.socket.once('close', () => response.end())
})
server.on('upgrade', (request, socket) => {
  const accept = require('node:crypto').createHash('sha1').update(request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64')
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: ' + accept + '\\r\\n\\r\\n')
  socket.on('data', (chunk) => socket.write(chunk))
})
server.listen(process.env.PORT)`,
    })
    await deployed(portreeve, { name: 'stream', soak_seconds: 1, git_url: repository.url })
    const first = await new Promise<string>((resolve, reject) => {
      const call = request(
        { host: '127.0.0.1', port: portreeve.edge_port, headers: { host: 'stream.apps.test' } },
        (response) =>
          response.once('data', (chunk: Buffer) => {
            call.destroy()
            resolve(chunk.toString())
          }),
      ).on('error', reject)
      call.end()
    })
    expect(first).toBe('data: first\n\n')
    const echo = await new Promise<string>((resolve, reject) => {
      const call = request({
        host: '127.0.0.1',
        port: portreeve.edge_port,
        headers: {
          host: 'stream.apps.test',
          connection: 'Upgrade',
          upgrade: 'websocket',
          'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
          'sec-websocket-version': '13',
        },
      }).on('error', reject)
      call.on('response', (response) => reject(new Error(`answered ${response.statusCode}`)))
      call.on('upgrade', (_response, socket) => {
        socket.once('data', (chunk: Buffer) => {
          socket.destroy()
          resolve(chunk.toString())
        })
        socket.write('ping')
      })
      call.end()
    })
    expect(echo).toBe('ping')
  })
})

describe.concurrent('what goes wrong keeps the old release serving', () => {
  it.each([
    [
      'a build that fails',
      { Dockerfile: 'FROM node:22-slim\nRUN echo about to break && exit 7\n' },
      {},
      'build_failed',
      'build',
      { log: ['about to break'] },
    ],
    [
      'a release command that fails',
      {},
      { build: { release_command: 'echo cannot migrate; exit 4' } },
      'release_failed',
      'release',
      { log: ['cannot migrate'] },
    ],
    [
      'a container that exits',
      { 'server.js': 'console.log("no database"); process.exit(5)' },
      {},
      'exited',
      'verify',
      { log: ['no database'] },
    ],
    [
      'a script that ends by itself',
      { 'server.js': 'console.log("done")' },
      {},
      'exited',
      'verify',
      {
        message: expect.stringContaining('a script that ends by itself'),
        hint: expect.stringContaining('cron job'),
      },
    ],
    [
      'an app that listens on another port',
      { 'server.js': "require('node:http').createServer((_, answer) => answer.end()).listen(4560 + 7)" },
      { health_check: { grace_s: 2 } },
      'not_ready',
      'verify',
      { message: expect.stringContaining('it listens on 4567, not on ') },
    ],
    [
      'an app that listens where only it itself can connect',
      {
        'server.js':
          "require('node:http').createServer((_, answer) => answer.end()).listen(process.env.PORT, '127.0.0.1')",
      },
      { health_check: { grace_s: 2 } },
      'not_ready',
      'verify',
      { message: expect.stringContaining('it listens on 127.0.0.1:') },
    ],
    [
      'an app that never listens',
      { 'server.js': 'setInterval(() => {}, 1000)' },
      { health_check: { grace_s: 2 } },
      'not_ready',
      'verify',
      { message: expect.stringContaining('nothing listens') },
    ],
    [
      'an app that dies seconds after the switch',
      {
        'server.js': `${nodeApp('dying')['server.js']}\nsetTimeout(() => { console.log('out of luck'); process.exit(9) }, 6000)`,
      },
      { soak_seconds: 10 },
      'exited',
      'soak',
      { log: expect.arrayContaining(['out of luck']) },
    ],
  ] as const)('%s', async (what, files, change, code, step, told) => {
    const name = `bad-${what.replace(/^an? /, '').replaceAll(' ', '-').slice(0, 40)}`.replace(/-$/, '')
    const repository = forge.repository(name)
    repository.commit(nodeApp('good'), 'good')
    const app = await deployed(portreeve, { name, soak_seconds: 1, git_url: repository.url })
    repository.commit({ ...files, 'note.txt': what }, 'bad')
    await portreeve.call('PUT', `/api/apps/${app.id}`, change)
    const failed = await redeployed(portreeve, app.id)
    expect(failed, JSON.stringify(failed)).toMatchObject({
      status: 'failed',
      error: { code, step, ...told },
    })
    expect(failed.error.message).toMatch(/^[A-Z].*\.$/s)
    expect((await portreeve.call('GET', `/api/apps/${app.id}`)).body.data).toMatchObject({
      status: 'running',
      live_deployment_id: app.live_deployment_id,
    })
    expect((await portreeve.visit(`${name}.apps.test`)).body).toBe('good')
    expect(docker('ps', '-aq', '--filter', `label=portreeve.app=${app.id}`).split('\n')).toHaveLength(1)
  })
})

describe('the data plane outlives the control plane', () => {
  it('serves on while Portreeve is killed, and carries on with the same state', async () => {
    const repository = forge.repository('steady')
    repository.commit(nodeApp('steady'))
    const app = await deployed(portreeve, {
      name: 'steady',
      soak_seconds: 1,
      git_url: repository.url,
    })
    await portreeve.kill()
    expect((await portreeve.visit('steady.apps.test')).body).toBe('steady')
    await portreeve.start()
    expect((await portreeve.call('GET', `/api/apps/${app.id}`)).body.data).toMatchObject({
      status: 'running',
      live_deployment_id: app.live_deployment_id,
    })
    expect((await portreeve.visit('steady.apps.test')).body).toBe('steady')
    expect(await portreeve.stop()).toBe(0)
    expect((await portreeve.visit('steady.apps.test')).body).toBe('steady')
    await portreeve.start()
  })

  it('brings back an instance that was removed behind its back', async () => {
    const repository = forge.repository('hardy')
    repository.commit(nodeApp('hardy'))
    const app = await deployed(portreeve, {
      name: 'hardy',
      soak_seconds: 1,
      git_url: repository.url,
    })
    docker('rm', '-f', docker('ps', '-q', '--filter', `label=portreeve.app=${app.id}`))
    await eventually(
      'The app answering again',
      async () => ((await portreeve.visit('hardy.apps.test')).body === 'hardy' ? true : undefined),
      30_000,
    )
  })

  it('refuses a second process on the same data directory', async () => {
    const { spawnSync } = await import('node:child_process')
    const second = spawnSync(process.execPath, ['.output/server/index.mjs'], {
      env: {
        PATH: process.env.PATH,
        PORT: '0',
        PORTREEVE_DATA_DIR: portreeve.data_directory,
        PORTREEVE_HTTP_PORT: '18080',
        PORTREEVE_HTTPS_PORT: '18443',
      },
      encoding: 'utf8',
      timeout: 30_000,
    })
    expect(second.status).toBe(1)
    expect(second.stderr).toContain('Another Portreeve is running')
  })
})
