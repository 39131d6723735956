import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { run } from '#server/kernel/process'
import { createConnection } from '#server/platform/engine/connection'
import { createIsolation } from '#server/platform/host-rules/isolation'
import { createListedAddresses } from '#server/platform/host-rules/listed-addresses'
import { BUSYBOX_IMAGE, ensureBusyboxImage } from '#test/support/engine-images'
import { canStartEngine, startOwnEngine } from '#test/support/own-engine'
import { poll } from '#test/support/poll'

/** Addresses of the machine: towards containers, and of its own network. */
const GATEWAY = 'fd77:1::1'
const OWN = 'fd77:2::1'
/** Another machine of that network, and one that the public reaches. */
const NEIGHBOUR = 'fd77:2::2'
const PUBLIC = '2600:9:9::2'
const [PORT, EDGE_PORT, LISTED_PORT] = [8001, 8080, 8002]
const SERVE = (ports: number[]) =>
  `for (const port of ${JSON.stringify(ports)}) require("node:http").createServer((_, r) => r.end("inside")).listen(port, "::")`

describe.skipIf(!canStartEngine)('an engine whose build steps have IPv6', () => {
  const programs: ChildProcess[] = []
  let own: Awaited<ReturnType<typeof startOwnEngine>>
  const ip = (...args: string[]) => execFileSync('ip', args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const neighbour = `nb6-${process.pid}`
  const inside = (namespace: string, code: string) =>
    programs.push(spawn('nsenter', [`--net=/run/netns/${namespace}`, process.execPath, '-e', code]))
  /** What a step that runs on the default bridge finds open, of addresses with ports. */
  function probe(targets: string[]): string {
    const script = targets
      .map(
        (at) =>
          `if timeout 4 wget -q -O /dev/null http://${at}/; then echo "open ${at}"; else echo "shut ${at}"; fi`,
      )
      .join('; ')
    return execFileSync(
      '/usr/bin/docker',
      ['-H', own.docker_host, 'run', '--rm', BUSYBOX_IMAGE, 'sh', '-c', `${script} 2>/dev/null`],
      { encoding: 'utf8' },
    )
  }
  const at = (address: string, port: number) => `[${address}]:${port}`

  beforeAll(async () => {
    own = await startOwnEngine('--ipv6', '--fixed-cidr-v6', 'fd77:1::/64')
    await ensureBusyboxImage(own.docker)
    ip('netns', 'add', neighbour)
    ip('-n', own.namespace, 'link', 'add', 'lan0', 'type', 'veth', 'peer', 'name', 'lan0', 'netns', neighbour)
    for (const [namespace, addresses] of [
      [own.namespace, [OWN, '2600:9:9::1']],
      [neighbour, [NEIGHBOUR, PUBLIC]],
    ] as const) {
      for (const address of addresses)
        ip('-n', namespace, 'addr', 'add', `${address}/64`, 'dev', 'lan0', 'nodad')
      ip('-n', namespace, 'link', 'set', 'lan0', 'up')
    }
    ip('-n', neighbour, 'route', 'add', 'default', 'via', OWN)
    execFileSync('nsenter', [
      `--net=/run/netns/${own.namespace}`,
      'sysctl',
      '-q',
      '-w',
      'net.ipv6.conf.all.forwarding=1',
    ])
    inside(own.namespace, SERVE([PORT, EDGE_PORT, LISTED_PORT]))
    inside(neighbour, SERVE([80]))
    await poll(() => probe([at(GATEWAY, PORT), at(NEIGHBOUR, 80)]).split('open').length === 3)
  })
  afterAll(async () => {
    for (const program of programs) program.kill()
    ip('netns', 'del', neighbour)
    await own.close()
  })

  test('keeps them from this machine and its neighbours over IPv6, but for the edge, the public and what is listed', async () => {
    const connection = createConnection(own.docker_host)
    const isolation = createIsolation({
      docker_host: own.docker_host,
      engine: connection,
      listed: createListedAddresses([`[${OWN}]:${LISTED_PORT}`]),
      edge_ports: [EDGE_PORT],
      log: () => {},
      run,
    })
    const shut = [at(GATEWAY, PORT), at(OWN, PORT), at(NEIGHBOUR, 80)]
    const open = [at(GATEWAY, EDGE_PORT), at(OWN, LISTED_PORT), at(PUBLIC, 80)]
    expect(await isolation.renew()).toEqual({ active: true })
    const found = probe([...shut, ...open])
    for (const target of shut) expect(found).toContain(`shut ${target}`)
    for (const target of open) expect(found).toContain(`open ${target}`)
    expect(await isolation.renew(), 'the rules are recognised as they are').toEqual({ active: true })
    isolation.leave()
    connection.close()
  })
})
