import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { run } from '#server/kernel/process'
import { createConnection } from '#server/platform/engine/connection'
import { createIsolation } from '#server/platform/host-rules/isolation'
import { createListedAddresses } from '#server/platform/host-rules/listed-addresses'
import { BUSYBOX_IMAGE, ensureBusyboxImage } from '#test/support/engine-images'
import { canStartEngine, startOwnEngine } from '#test/support/own-engine'
import { poll } from '#test/support/poll'

/** A machine of the operator's own network, and one that the public reaches. */
const [NEIGHBOUR, PUBLIC] = ['10.98.7.2', '198.51.100.2']
const PROJECTS = [
  ['one', '10.200.0.0/22'],
  ['other', '10.200.4.0/22'],
] as const
const SERVE = 'require("node:http").createServer((_, r) => r.end("inside")).listen(80, "0.0.0.0")'

describe.skipIf(!canStartEngine)('when somebody emptied the firewall of the machine', () => {
  let own: Awaited<ReturnType<typeof startOwnEngine>>
  let connection: ReturnType<typeof createConnection>
  let isolation: ReturnType<typeof createIsolation>
  let server: ChildProcess
  const neighbour = `nb-flush-${process.pid}`
  const ip = (...args: string[]) => execFileSync('ip', args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const within = (...argv: string[]) =>
    execFileSync('nsenter', [`--net=/run/netns/${own.namespace}`, ...argv])
  const docker = (...args: string[]) =>
    execFileSync('/usr/bin/docker', ['-H', own.docker_host, ...args], { encoding: 'utf8' }).trim()
  /** An app of this project, and where it serves. */
  function served(project: string): string {
    const serve = 'mkdir /www; echo served > /www/index.html; httpd -f -h /www'
    const id = docker('run', '-d', '--init', '--network', project, BUSYBOX_IMAGE, 'sh', '-c', serve)
    return docker('inspect', '-f', '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}', id)
  }
  /** Which of the addresses answer on a network. */
  function open(network: string, targets: string[]): string[] {
    const script = targets
      .map((at) => `timeout 3 wget -q -O /dev/null http://${at}/ && echo ${at}`)
      .join('; ')
    const argv = [
      'run',
      '--rm',
      '--network',
      network,
      BUSYBOX_IMAGE,
      'sh',
      '-c',
      `(${script}; true) 2>/dev/null`,
    ]
    return docker(...argv)
      .split('\n')
      .filter(Boolean)
  }

  beforeAll(async () => {
    own = await startOwnEngine()
    await ensureBusyboxImage(own.docker)
    ip('netns', 'add', neighbour)
    ip('-n', own.namespace, 'link', 'add', 'lan0', 'type', 'veth', 'peer', 'name', 'lan0', 'netns', neighbour)
    ip('-n', own.namespace, 'addr', 'add', '10.98.7.1/24', 'dev', 'lan0')
    ip('-n', neighbour, 'addr', 'add', `${NEIGHBOUR}/24`, 'dev', 'lan0')
    ip('-n', neighbour, 'addr', 'add', `${PUBLIC}/32`, 'dev', 'lan0')
    ip('-n', own.namespace, 'link', 'set', 'lan0', 'up')
    ip('-n', neighbour, 'link', 'set', 'lan0', 'up')
    ip('-n', own.namespace, 'route', 'add', `${PUBLIC}/32`, 'via', NEIGHBOUR)
    ip('-n', neighbour, 'route', 'add', 'default', 'via', '10.98.7.1')
    server = spawn('nsenter', [`--net=/run/netns/${neighbour}`, process.execPath, '-e', SERVE])
    for (const [name, subnet] of PROJECTS) docker('network', 'create', '--subnet', subnet, name)
    connection = createConnection(own.docker_host)
    isolation = createIsolation({
      docker_host: own.docker_host,
      engine: connection,
      listed: createListedAddresses([]),
      edge_ports: [8080],
      log: () => {},
      run,
    })
    await poll(() => open('one', [NEIGHBOUR]).length === 1)
  })
  afterAll(async () => {
    isolation.leave()
    connection.close()
    server.kill()
    ip('netns', 'del', neighbour)
    await own.close()
  })

  beforeEach(() => own.restart())

  // The second is what most instructions for it say; it takes the engine's own chains as well.
  test.each([[['-F']], [['-F'], ['-X']]])(
    'apps reach their own project and the public alone, and again once the engine has its rules back',
    async (...commands) => {
      const [here, there] = [served('one'), served('other')]
      const targets = [here, there, NEIGHBOUR, PUBLIC]
      expect(await isolation.renew()).toEqual({ active: true })
      expect(open('one', targets)).toEqual([here, PUBLIC])

      within('iptables', '-P', 'FORWARD', 'ACCEPT')
      for (const command of commands) within('iptables', ...command)
      expect(open('one', targets), 'it is emptied').toEqual(targets)
      expect(await isolation.renew()).toEqual({ active: true })
      expect(open('one', targets)).toEqual([here, PUBLIC])
      expect(open('bridge', [here, NEIGHBOUR, PUBLIC])).toEqual([PUBLIC])
      expect(await isolation.renew(), 'the rules are recognised as they are').toEqual({ active: true })

      await own.restart()
      expect(await isolation.renew()).toEqual({ active: true })
      const [mine, theirs] = [served('one'), served('other')]
      expect(open('one', [mine, theirs, NEIGHBOUR, PUBLIC])).toEqual([mine, PUBLIC])
      const rules = within('iptables', '-S').toString()
      expect(rules).toMatch(/-A DOCKER-USER .*-j PTR-OUT-PROJECTS/)
      expect(rules).not.toMatch(/-A FORWARD .*-j PTR-/)
    },
  )
})
