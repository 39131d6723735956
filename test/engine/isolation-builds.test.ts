import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { run } from '#server/kernel/process'
import { createConnection } from '#server/platform/engine/connection'
import { createIsolation } from '#server/platform/host-rules/isolation'
import { createListedAddresses } from '#server/platform/host-rules/listed-addresses'
import { BUSYBOX_IMAGE, ensureBusyboxImage } from '#test/support/engine-images'
import { canStartEngine, startOwnEngine } from '#test/support/own-engine'
import { poll } from '#test/support/poll'

/** A machine of the public. */
const PUBLIC = '192.0.2.2'
const GATEWAY = '172.31.255.1'
const EDGE_PORT = 8080
const SERVE = (port: number) =>
  `require("node:http").createServer((_, r) => r.end("inside")).listen(${port}, "0.0.0.0")`

describe.skipIf(!canStartEngine)('what runs on the bridge of build steps', () => {
  const programs: ChildProcess[] = []
  let own: Awaited<ReturnType<typeof startOwnEngine>>
  let connection: ReturnType<typeof createConnection>
  let isolation: ReturnType<typeof createIsolation>
  const ip = (...args: string[]) => execFileSync('ip', args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const folder = mkdtempSync(join(tmpdir(), 'portreeve-apart-'))
  const outside = `nb-apart-${process.pid}`
  const inside = (namespace: string, code: string) =>
    programs.push(spawn('nsenter', [`--net=/run/netns/${namespace}`, process.execPath, '-e', code]))
  /** Waits without holding the thread up, which sets apart what appears meanwhile. */
  async function docker(...args: string[]): Promise<string> {
    const argv = ['/usr/bin/docker', '-H', own.docker_host, ...args]
    const result = await run(argv, { cwd: folder, env: { HOME: folder, DOCKER_BUILDKIT: '1' } })
    expect(result.exit_code, result.stderr).toBe(0)
    return result.stdout.trim()
  }
  const probe = (targets: string[]) =>
    `(${targets.map((at) => `timeout 2 wget -q -O /dev/null http://${at}/ && echo ${at}`).join('; ')}; true) 2>/dev/null`
  const lines = (text: string) => text.split('\n').filter(Boolean)
  /** Which of the addresses answer a container. */
  const open = async (targets: string[]) =>
    lines(await docker('run', '--rm', BUSYBOX_IMAGE, 'sh', '-c', probe(targets)))
  /** Which of the addresses answer a step of a build. */
  async function openInStep(targets: string[]): Promise<string[]> {
    writeFileSync(join(folder, 'Dockerfile'), `FROM ${BUSYBOX_IMAGE}\nRUN ${probe(targets)} > /found\n`)
    await docker('build', '--no-cache', '-t', 'probe:1', '.')
    return lines(await docker('run', '--rm', '--network', 'none', 'probe:1', 'cat', '/found'))
  }
  async function served(): Promise<string> {
    const serve = 'mkdir /www; echo served > /www/index.html; httpd -f -h /www'
    const id = await docker('run', '-d', BUSYBOX_IMAGE, 'sh', '-c', serve)
    return `${await docker('inspect', '-f', '{{.NetworkSettings.IPAddress}}', id)}:80`
  }

  beforeAll(async () => {
    own = await startOwnEngine()
    await ensureBusyboxImage(own.docker)
    ip('netns', 'add', outside)
    ip('-n', own.namespace, 'link', 'add', 'lan0', 'type', 'veth', 'peer', 'name', 'lan0', 'netns', outside)
    ip('-n', own.namespace, 'addr', 'add', '192.0.2.1/24', 'dev', 'lan0')
    ip('-n', outside, 'addr', 'add', `${PUBLIC}/24`, 'dev', 'lan0')
    for (const namespace of [own.namespace, outside]) ip('-n', namespace, 'link', 'set', 'lan0', 'up')
    // As newer engines leave it: what a bridge passes on is in no packet filter.
    const filter = 'net.bridge.bridge-nf-call-iptables=0'
    execFileSync('nsenter', [`--net=/run/netns/${own.namespace}`, 'sysctl', '-q', '-w', filter])
    connection = createConnection(own.docker_host)
    isolation = createIsolation({
      docker_host: own.docker_host,
      engine: connection,
      listed: createListedAddresses([]),
      edge_ports: [EDGE_PORT],
      log: () => {},
      run,
    })
    inside(own.namespace, SERVE(EDGE_PORT))
    inside(outside, SERVE(80))
    const ready = [`${GATEWAY}:${EDGE_PORT}`, `${PUBLIC}:80`]
    await poll(async () => (await open(ready)).length === ready.length)
  })
  afterAll(async () => {
    isolation.leave()
    connection.close()
    for (const program of programs) program.kill()
    ip('netns', 'del', outside)
    await own.close()
    rmSync(folder, { recursive: true })
  })

  test('reaches the public and the edge, and nothing else that runs there', async () => {
    const others = [`${GATEWAY}:${EDGE_PORT}`, `${PUBLIC}:80`]
    const before = await served()
    expect(await open([before]), 'without it').toEqual([before])
    expect(await openInStep([before]), 'without it').toEqual([before])

    expect(await isolation.renew()).toEqual({ active: true })
    const after = await served()
    expect(await open([before, after, ...others])).toEqual(others)
    expect(await openInStep([before, after, ...others])).toEqual(others)
  })
})
