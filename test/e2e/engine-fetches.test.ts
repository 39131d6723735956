import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BUSYBOX_IMAGE, ensureBusyboxImage } from '#test/support/engine-images'
import { startTrap, type Trap } from '#test/support/inside-hosts'
import { docker, type Portreeve, startPortreeve } from '#test/support/portreeve'

const CANARY = 'canary-of-the-inside'
/** A base image that makes whoever builds on it fetch from the inside. */
const TRIGGERING = 'ptr-test/triggering:1'
const TRAPPED = 'trapped.ptr-test:1'

let portreeve: Portreeve
let trap: Trap
/** Hosts that the operator listed, and which lead inside. */
let redirecting: Server
let registry: Server
let inside: string[]
const hostOf = (server: Server) => `127.0.0.1:${(server.address() as AddressInfo).port}`
const listen = (listener: RequestListener) =>
  new Promise<Server>((resolve) => {
    const server = createServer(listener).listen(0, '127.0.0.1', () => resolve(server))
  })

/** Builds with the engine's own client, past everything that Portreeve reads. */
function engineBuild(dockerfile: string, tag: string, buildkit = '1'): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'ptr-context-'))
  writeFileSync(join(folder, 'Dockerfile'), dockerfile)
  return new Promise((resolve) => {
    // The client, which asks registries for tokens in the place of BuildKit, has no network: what arrives is the engine's.
    const argv = ['--net', '/usr/bin/docker', 'build', '--no-cache', '-t', tag, folder]
    const build = spawn('/usr/bin/unshare', argv, {
      env: { ...process.env, DOCKER_BUILDKIT: buildkit },
    })
    let output = ''
    for (const stream of [build.stdout, build.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString()
      })
    build.once('close', (code) => {
      rmSync(folder, { recursive: true })
      resolve(code === 0 ? 'built' : output)
    })
  })
}

beforeAll(async () => {
  await ensureBusyboxImage()
  trap = await startTrap()
  const addresses = Object.values(networkInterfaces()).flatMap(
    (all) => all?.map(({ address }) => address) ?? [],
  )
  inside = addresses.filter((address) => !address.includes(':')).map((address) => `${address}:${trap.port}`)
  redirecting = await listen((_, response) => {
    response.writeHead(302, { location: `http://127.0.0.1:${trap.port}/${CANARY}` }).end()
  })
  registry = await listen((_, response) => {
    response
      .writeHead(401, {
        'www-authenticate': `Bearer realm="http://127.0.0.1:${trap.port}/token",service="x"`,
      })
      .end('{}')
  })
  await engineBuild(`FROM ${BUSYBOX_IMAGE}\nONBUILD ADD http://127.0.0.1:${trap.port}/ /x`, TRIGGERING)
  portreeve = await startPortreeve({
    env: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: [redirecting, registry].map(hostOf).join(',') },
  })
})
afterAll(async () => {
  await portreeve?.dispose()
  await trap?.close()
  for (const server of [redirecting, registry]) server?.close()
  docker('rmi', '-f', TRIGGERING)
})

async function deployed(name: string, source: Record<string, unknown>) {
  const { status, body } = await portreeve.call('POST', '/api/apps', { name, soak_seconds: 0, ...source })
  expect(status, JSON.stringify(body)).toBe(201)
  const list = await portreeve.call('GET', `/api/apps/${body.data.id}/deployments`)
  const deployment = await portreeve.untilDeployment(list.body.data[0].id)
  const log = await portreeve.call('GET', `/api/deployments/${deployment.id}/logs?tail=5000`)
  return { deployment, log: JSON.stringify(log.body) }
}

describe('a user cannot make the engine connect to the inside', () => {
  it.each<[string, (target: string) => Record<string, unknown>]>([
    ['escape', (at) => ({ dockerfile: `FROM a\n# escape=\`\nADD \\\nhttp://${at}/ /x` })],
    ['redirect', () => ({ dockerfile: `FROM ${BUSYBOX_IMAGE}\nADD http://${hostOf(redirecting)}/ /x` })],
    ['onbuild', () => ({ dockerfile: `FROM ${TRIGGERING}` })],
    ['form-feed', (at) => ({ dockerfile: `#\fsyntax=${at}/x\nFROM ${BUSYBOX_IMAGE}` })],
    ['return', (at) => ({ dockerfile: `#\rsyntax=${at}/x\nFROM ${BUSYBOX_IMAGE}` })],
    [
      'mount',
      (at) => ({ dockerfile: `FROM ${BUSYBOX_IMAGE}\nRUN --mount=type=bind,From=${at}/x,target=/x true` }),
    ],
    [
      'quoted',
      (at) => ({ dockerfile: `FROM ${BUSYBOX_IMAGE}\nRUN --mount=type=bind,"from=${at}/x",target=/x true` }),
    ],
    ['realm', () => ({ dockerfile: `FROM ${hostOf(registry)}/team/base:1` })],
    ['image-realm', () => ({ image: `${hostOf(registry)}/team/app:1` })],
    ['id', () => ({ dockerfile: `FROM ${docker('images', '-q', BUSYBOX_IMAGE)}` })],
    ['argument', (at) => ({ dockerfile: `ARG A=${at}\nFROM \${A#x}/y` })],
    ['git', (at) => ({ dockerfile: `FROM ${BUSYBOX_IMAGE}\nADD git://${at}/a.git /x` })],
  ])('by %s', async (name, source) => {
    const { deployment, log } = await deployed(`by-${name}`, source(`127.0.0.1:${trap.port}`))
    expect(deployment.status, log).toBe('failed')
    expect(deployment.error.hint).toEqual(expect.any(String))
    expect(log).not.toContain(CANARY)
    expect(trap.caught()).toBe(0)
  })

  it('which is told of what was added, and not of the base image', async () => {
    const dockerfile = `FROM ${BUSYBOX_IMAGE}\nADD http://${hostOf(redirecting)}/ /x`
    const { deployment } = await deployed('told', { dockerfile })
    expect(deployment.error.message).toContain(`adds something from 127.0.0.1:${trap.port}`)
  })

  it.each(['1', '0'])('by anything that Portreeve does not see, with the builder %s', async (buildkit) => {
    const at = `127.0.0.1:${trap.port}`
    for (const dockerfile of [
      ...inside.map((address) => `FROM ${BUSYBOX_IMAGE}\nADD http://${address}/ /x`),
      `FROM ${TRIGGERING}`,
      `FROM ${at}/x`,
      `FROM ${hostOf(registry)}/team/base:1`,
      `FROM ${BUSYBOX_IMAGE}\nADD http://${hostOf(redirecting)}/ /x`,
      `# syntax=${at}/x\nFROM ${BUSYBOX_IMAGE}\nADD http://${at}/ /x`,
    ])
      expect(await engineBuild(dockerfile, TRAPPED, buildkit), dockerfile).not.toBe('built')
    expect(trap.caught()).toBe(0)
  })

  it('while programs of this machine reach the same addresses, and published ports their containers', async () => {
    const answer = await fetch(`http://${hostOf(redirecting)}/`, { redirect: 'manual' })
    expect(answer.status).toBe(302)
    const id = docker(
      'run',
      '-d',
      '-p',
      '127.0.0.1::80',
      BUSYBOX_IMAGE,
      'sh',
      '-c',
      'echo published > /www/index.html; httpd -f -h /www',
    )
    try {
      const [, port] = /:(\d+)$/.exec(docker('port', id, '80'))!
      await expect
        .poll(() => fetch(`http://127.0.0.1:${port}/`).then((answer) => answer.text(), String), {
          timeout: 20_000,
        })
        .toBe('published\n')
    } finally {
      docker('rm', '-f', id)
    }
  })

  it('and the filter is said, and gone once Portreeve has stopped', async () => {
    const { checks } = (await portreeve.call('GET', '/readyz')).body
    expect(checks.egress).toEqual({ ok: true })
    expect(execFileSync('iptables', ['-S'], { encoding: 'utf8' })).toContain('PTR-EGRESS-')
    expect(await portreeve.stop()).toBe(0)
    expect(execFileSync('iptables', ['-S'], { encoding: 'utf8' })).not.toContain('PTR-EGRESS-')
    await portreeve.start()
  })
})
