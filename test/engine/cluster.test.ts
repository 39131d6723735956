import { text } from 'node:stream/consumers'
import type Docker from 'dockerode'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Cluster, Member } from '#server/platform/cluster/cluster'
import { createCluster } from '#server/platform/cluster/create'
import { createNodePolicy } from '#server/platform/cluster/node-policy'
import { createDockerEngine } from '#server/platform/engine/docker'
import type { Engine, Instance } from '#server/platform/engine/engine'
import { createLog } from '#server/kernel/log'
import { run } from '#server/kernel/process'
import { createHostGuard, type HostGuard } from '#server/platform/host-rules/host-guard'
import { createDial } from '#server/platform/outbound/dial'
import { type Machine, startMachines, STRICT_PORT, WITH_USERS } from '#test/support/cluster-machines'
import { heardIn, inNetwork, tunnelled } from '#test/support/datagrams'
import { BUSYBOX_IMAGE, ensureBusyboxImage } from '#test/support/engine-images'
import { canStartEngine } from '#test/support/own-engine'
import { poll } from '#test/support/poll'
import { testWorkload } from '#test/support/workload'

const NODE = 'node_worker'
const never = new AbortController().signal
const serve = (word: string) => `mkdir -p /www; echo ${word} > /www/index.html; exec httpd -f -h /www -p 8080`

describe.skipIf(!canStartEngine)('a cluster of two servers', () => {
  let machines: Awaited<ReturnType<typeof startMachines>>
  let cluster: Cluster
  let engine: Engine
  let member: Member
  let guard: HostGuard

  function open() {
    const options = {
      docker_host: machines.manager.docker_host,
      installation: 'cluster-test',
      layer_bytes: undefined,
      dial: createDial(createNodePolicy(async () => [])),
      openings: async () => [],
      admit: guard.egress.admit,
      log: (line: string) => process.stderr.write(`${line}\n`),
    }
    return createCluster(options, (takenRanges) =>
      createDockerEngine({
        docker_host: options.docker_host,
        installation: options.installation,
        takenRanges,
      }),
    )
  }
  const workload = (project: string, name: string, node: string, image: string) =>
    testWorkload({
      image,
      project_id: `prj_${project}`,
      release_id: `rel_${project}_${name}`,
      owner: { kind: 'app', id: `app_${project}_${name}` },
      network: `ptr-${project}`,
      aliases: [name],
      shell_command: serve(name),
      placement: { node },
    })
  async function place(project: string, name: string, node: string): Promise<Instance> {
    const image = (await engine.findImage(BUSYBOX_IMAGE))!.id
    await engine.ensureNetwork(`ptr-${project}`, { project: `prj_${project}` })
    const [instance] = await engine.ensureRelease(workload(project, name, node, image), never)
    await engine.superviseRelease(instance!.release_id, true)
    return instance!
  }
  /** What a program in an instance prints; nothing where it fails. */
  async function inInstance(instance: Instance, ...command: string[]): Promise<string> {
    const { stdin, stdout, done } = await engine.exec(instance.id, { command }, never)
    stdin.end()
    const printed = await text(stdout as AsyncIterable<Uint8Array>)
    return (await done).exit_code === 0 ? printed.trim() : ''
  }
  const visit = (instance: Instance, url: string) =>
    inInstance(instance, 'timeout', '3', 'wget', '-q', '-O', '-', url)
  /** What a program of the manager's own machine, such as the edge, gets from an address. */
  async function fromManager(address: string): Promise<string> {
    const curl = ['curl', '-s', '-m', '3', `http://${address}:8080/`]
    return (
      await run(['nsenter', `--net=/run/netns/${machines.manager.name}`, ...curl], { cwd: '/' })
    ).stdout.trim()
  }

  beforeAll(async () => {
    machines = await startMachines({ 'live-restore': true }, WITH_USERS)
    await ensureBusyboxImage(machines.manager.docker)
    guard = createHostGuard({
      // As of an operator whose other machines apps may reach.
      config: { docker_host: machines.manager.docker_host, allowed_private_hosts: ['10.0.0.0/8'] },
      edge_ports: [],
      log: createLog('json', 'error'),
    })
    guard.start()
    await poll(() => Object.values(guard.checks()).every(({ message }) => message === undefined))
    ;({ cluster, engine } = open())
  })
  afterAll(async () => {
    await engine?.close()
    await guard?.stop()
    await machines?.close()
  })

  test('a server shows its key before it is trusted with anything, and what it is afterwards', async () => {
    const { target, host_key } = machines
    await expect(cluster.inspect(target, never)).rejects.toMatchObject({ code: 'host_key', shown: host_key })
    const facts = await cluster.inspect({ ...target, host_key }, never)
    expect(facts).toMatchObject({
      host_name: 'machine-2',
      host_key,
      is_root: true,
      in_cluster: false,
      taken_ports: [],
    })
    expect(facts.memory_bytes).toBeGreaterThan(0)
    expect(facts.engine_version).toMatch(/^\d+\./)
    expect(Math.abs(facts.clock_offset_ms)).toBeLessThan(60_000)
    const strict = await cluster.inspect({ ...target, host_key, port: STRICT_PORT }, never)
    expect(strict.engine_version).toBe(facts.engine_version)
    member = { id: NODE, target: { ...target, host_key } }
  })
  test('joins from nothing, however often it is asked, although live-restore was on', async () => {
    await cluster.join(member, never)
    cluster.use([member])
    await cluster.join(member, never)
    const nodes = (await machines.manager.docker.listNodes()) as { Status: { State: string } }[]
    expect(nodes.map(({ Status }) => Status.State)).toEqual(['ready', 'ready'])
    const reading = await cluster.read(NODE)
    expect(reading.cpus).toBeGreaterThan(0)
    expect(reading.engine.os).toBe('linux')
  })

  let here: Instance
  let there: Instance
  test('a workload that is placed on the member answers this server by its address', async () => {
    expect((await machines.worker.docker.info()).SecurityOptions).toContain('name=userns')
    here = await place('shop', 'db', 'local')
    there = await place('shop', 'api', NODE)
    expect(there.node).toBe(NODE)
    expect((await machines.worker.docker.listContainers()).map(({ Id }) => Id)).toEqual([there.id])
    await poll(async () => (await fromManager(there.address!)) === 'api')
  })
  test('containers of one project find each other by name, wherever they are', async () => {
    await poll(async () => (await visit(there, 'http://db:8080/')) === 'db')
    expect(await visit(here, 'http://api:8080/')).toBe('api')
    const later = await place('shop', 'cache', 'local')
    expect(await visit(there, 'http://cache:8080/')).toBe('cache')
    expect(await visit(later, 'http://api:8080/')).toBe('api')
  })
  test('those of another project reach none of them, by name or address', async () => {
    const [stranger, neighbour] = [await place('other', 'spy', 'local'), await place('other', 'mole', NODE)]
    await poll(async () => (await visit(stranger, 'http://mole:8080/')) === 'mole')
    const targets = ['api', 'db', there.address!, here.address!]
    const tried = [stranger, neighbour].flatMap((spy) =>
      targets.map((target) => visit(spy, `http://${target}:8080/`)),
    )
    expect(await Promise.all(tried)).toEqual(tried.map(() => ''))
  })
  test('what runs on the member reaches neither its machine nor this one', async () => {
    const connects = (address: string, port: number) =>
      inInstance(
        there,
        'sh',
        '-c',
        `timeout 2 nc -w 1 ${address} ${port} < /dev/null > /dev/null 2>&1 && echo yes; true`,
      )
    expect(await connects('db', 8080)).toBe('yes')
    for (const address of [machines.worker.address, machines.manager.address, '10.216.0.1'])
      expect(await connects(address, 22), address).toBe('')
  })
  /** Where packets of a container begin and end. */
  async function networkOf({ docker }: Machine, { id }: Instance) {
    const { State, NetworkSettings } = await docker.getContainer(id).inspect()
    const shared = Object.entries(NetworkSettings.Networks).find(([name]) => name.endsWith('-shared'))![1]
    return { path: `/proc/${State.Pid}/ns/net`, shared }
  }
  test('what a container forges for the ways between servers reaches nobody of another project', async () => {
    const { manager, worker } = machines
    const spy = await networkOf(manager, await place('other', 'spy', 'local'))
    const victim = await networkOf(worker, there)
    const [, device] = /link\/ether (\S+)/.exec(worker.inside('ip', '-o', 'link', 'show', 'ptr-cluster'))!
    const shared = await manager.docker.getNetwork('ptr-shop-shared').inspect()
    const id = Number(shared.Options!['com.docker.network.driver.overlay.vxlanid_list'])
    const forged = {
      tunnel: tunnelled(0x70_74_72, device!, '10.216.0.1', there.address!),
      shared: tunnelled(id, victim.shared.MacAddress, '10.208.1.99', victim.shared.IPAddress),
    }
    const heard = await heardIn(victim.path, async () => {
      await inNetwork(spy.path, { to: there.address!, port: 9999, bytes: Buffer.from('plain') })
      for (const bytes of Object.values(forged))
        await inNetwork(spy.path, { to: worker.address, port: 4789, bytes })
    })
    expect(heard).toEqual([])
  })
  test('nothing leaves a container by its address in the network over all servers', async () => {
    const { manager, worker } = machines
    for (const machine of [manager, worker]) {
      const { path, shared } = await networkOf(worker, there)
      const heard = await heardIn(`/run/netns/${machine.name}`, () =>
        inNetwork(path, {
          from: shared.IPAddress,
          to: machine.address,
          port: 9999,
          bytes: Buffer.from('bound'),
        }),
      )
      expect(heard).toEqual([])
    }
  })
  test('ports of the cluster are open to its servers alone, over IPv6 to nobody', () => {
    const found = machines.manager.inside('ip', '-6', '-o', 'addr', 'show', 'dev', 'eth0')
    const address = /inet6 (fe80[0-9a-f:]+)/.exec(found)![1]!
    const script = `timeout 2 bash -c 'exec 3<> /dev/tcp/${address}%eth0/$0' 2> /dev/null && echo open; true`
    for (const port of ['2377', '7946'])
      expect(machines.worker.inside('bash', '-c', script.replace('$0', port)), port).toBe('')
  })
  test('what a member says of its networks leads nothing to it that is elsewhere', async () => {
    const { manager, worker } = machines
    const mine = await manager.docker.getNetwork('ptr-shop').inspect()
    const model = await worker.docker.getContainer(there.id).inspect()
    const said: Docker.Network[] = []
    for (const Subnet of [mine.IPAM!.Config![0]!.Subnet!, '203.0.113.0/24'])
      said.push(
        await worker.docker.createNetwork({
          Name: `said-${said.length}`,
          Labels: mine.Labels!,
          IPAM: { Config: [{ Subnet }] },
        }),
      )
    const fake = await worker.docker.createContainer({
      name: 'rel_fake_it-0',
      Image: model.Image,
      Cmd: ['sleep', '600'],
      Labels: { ...model.Config.Labels, 'portreeve.release': 'rel_fake_it' },
      HostConfig: { NetworkMode: 'said-0' },
    })
    await fake.start()
    await place('shop', 'more', NODE)
    expect(await fromManager(here.address!)).toBe('db')
    expect(manager.inside('ip', '-4', 'route')).not.toContain('203.0.113.')
    const [found] = await engine.instances({ release_id: 'rel_fake_it' })
    expect(found).toMatchObject({ node: NODE, state: 'running' })
    expect(found!.address).toBeUndefined()
    await fake.remove({ force: true })
    for (const network of said) await network.remove()
    await engine.removeRelease('rel_shop_more', 0)
  })
  test('a further member finds the cluster open, however long it takes, and its containers find those of others', async () => {
    const { machine, target } = await machines.add()
    try {
      const further = { id: 'node_further', target }
      const doors = (name: string) => machines.manager.inside('iptables', '-S', name)
      const shut = ['OUTPUT', '-p', 'tcp', '--dport', '2377', '-j', 'DROP']
      machine.inside('iptables', '-I', ...shut)
      const joining = cluster.join(further, never).then(
        () => true,
        () => false,
      )
      await poll(() => doors('PTR-CLUSTER-TCP').includes(machine.address))
      // What puts this back has been everywhere else as well.
      machines.manager.inside('iptables', '-F', 'PTR-CLUSTER-UDP')
      await poll(() => doors('PTR-CLUSTER-UDP').includes(machines.worker.address))
      expect(doors('PTR-CLUSTER-TCP')).toContain(machine.address)
      machine.inside('iptables', '-D', ...shut)
      if (!(await joining)) await cluster.join(further, never)
      cluster.use([member, further])
      const more = await place('shop', 'more', further.id)
      await poll(async () => (await fromManager(more.address!)) === 'more')
      await poll(async () => (await visit(there, 'http://more:8080/')) === 'more')
      await poll(async () => (await visit(more, 'http://api:8080/')) === 'api')
      const token = async () => (await machines.manager.docker.swarmInspect()).JoinTokens?.Worker
      const told = await token()
      await cluster.leave(further, never)
      cluster.use([member])
      // Whoever has left knows how the others came in.
      expect(await token()).not.toBe(told)
    } finally {
      await machine.close()
    }
  })
  test('a member that is named by another address as well is refused, and stays what it is', async () => {
    const twice = { id: 'node_twice', target: member.target }
    await expect(cluster.join(twice, never)).rejects.toMatchObject({ code: 'unsuited' })
    await cluster.leave(twice, never, { is_given_up: true })
    expect((await engine.instances({ release_id: there.release_id }))[0]?.state).toBe('running')
    expect(await fromManager(there.address!)).toBe('api')
  })
  test('its log, measures, commands and events are those of any other instance', async () => {
    const lines: string[] = []
    expect(await inInstance(there, 'sh', '-c', 'echo said > /proc/1/fd/1; hostname')).toBe(
      there.id.slice(0, 12),
    )
    for await (const line of engine.logs(there.id, {})) lines.push(line.text)
    expect(lines).toContain('said')
    expect((await engine.stats(there.id))?.memory_bytes).toBeGreaterThan(0)
    expect((await engine.instances({ release_id: there.release_id })).map(({ node }) => node)).toEqual([NODE])
    const ending = new AbortController()
    const seen = (async () => {
      for await (const event of engine.events(ending.signal))
        if (event.kind === 'die' && event.release_id === 'rel_shop_extra') return true
      return false
    })()
    const extra = await place('shop', 'extra', NODE)
    await poll(async () => {
      await engine.removeRelease(extra.release_id, 0)
      return (await engine.instances({ release_id: extra.release_id })).length === 0
    })
    expect(await seen).toBe(true)
    ending.abort()
  })

  test('a member that falls silent is told of, and nobody waits for it', async () => {
    machines.worker.setReachable(false)
    await poll(
      async () => (await engine.instances({ release_id: there.release_id }))[0]?.state === 'exited',
      60_000,
    )
    await expect(cluster.read(NODE)).rejects.toMatchObject({ code: 'unreachable' })
    const another = await place('shop', 'another', 'local')
    expect(await fromManager(another.address!)).toBe('another')
    await engine.removeRelease(another.release_id, 0)
    await expect(place('shop', 'late', NODE)).rejects.toMatchObject({ code: 'unavailable' })
  })
  test('and serves again once it is back', async () => {
    machines.worker.setReachable(true)
    await poll(async () => (await engine.instances({ release_id: there.release_id }))[0]?.state === 'running')
    await poll(async () => (await fromManager(there.address!)) === 'api')
    await poll(async () => (await visit(there, 'http://db:8080/')) === 'db')
  })
  test('containers on a member whose engine was killed are started again when they are asked for', async () => {
    await machines.worker.restartEngine()
    // An engine that finds containers of one that was killed ends them.
    await poll(async () => (await place('shop', 'api', NODE).catch(() => undefined))?.id === there.id)
    await poll(async () => (await fromManager(there.address!)) === 'api')
  })
  test('what somebody removed of the way to it is put back', async () => {
    machines.manager.inside('ip', 'link', 'del', 'ptr-cluster')
    machines.worker.inside('iptables', '-F', 'PTR-CLUSTER-FWD')
    await poll(async () => (await fromManager(there.address!)) === 'api')
  })

  test('leaving takes everything of it from both servers', async () => {
    const stays = await place('shop', 'stays', 'local')
    await cluster.leave(member, never)
    cluster.use([])
    for (const { docker, inside } of [machines.manager, machines.worker]) {
      const { Swarm, LiveRestoreEnabled } = (await docker.info()) as {
        Swarm: { LocalNodeState: string }
        LiveRestoreEnabled: boolean
      }
      expect(Swarm.LocalNodeState).toBe('inactive')
      expect(
        (await docker.listNetworks()).filter(
          ({ Driver, Name }) => Driver === 'overlay' || Name === 'docker_gwbridge',
        ),
      ).toEqual([])
      await poll(
        async () =>
          LiveRestoreEnabled || ((await docker.info()) as { LiveRestoreEnabled: boolean }).LiveRestoreEnabled,
      )
      expect(inside('ip', '-o', 'link')).not.toContain('ptr-cluster')
      expect(inside('iptables', '-S')).not.toContain('CLUSTER')
    }
    expect(await machines.worker.docker.listContainers({ all: true })).toEqual([])
    expect(await machines.worker.docker.listImages({ all: true })).toEqual([])
    expect((await machines.worker.docker.listNetworks()).map(({ Name }) => Name).sort()).toEqual([
      'bridge',
      'host',
      'none',
    ])
    expect(machines.worker.inside('iptables', '-S')).not.toContain('PTR-')
    expect(await fromManager(stays.address!)).toBe('stays')
  })

  test('one that could not join has its engine set up as it was before', async () => {
    const { manager, worker } = machines
    const shut = ['OUTPUT', '-p', 'tcp', '--dport', '2377', '-j', 'DROP']
    worker.inside('iptables', '-I', ...shut)
    await expect(cluster.join(member, never)).rejects.toMatchObject({ code: 'failed' })
    worker.inside('iptables', '-D', ...shut)
    await cluster.leave(member, never, { is_given_up: true })
    for (const { docker } of [manager, worker])
      await poll(async () => ((await docker.info()) as { LiveRestoreEnabled: boolean }).LiveRestoreEnabled)
  })
  test('one leaves with all that was brought to it also after this server has lost the cluster', async () => {
    const { manager, worker } = machines
    await cluster.join(member, never)
    cluster.use([member])
    await place('shop', 'api', NODE)
    expect(await cluster.read(NODE)).toMatchObject({ in_cluster: true })
    await manager.docker.swarmLeave({ force: true })
    expect(await cluster.read(NODE)).toMatchObject({ in_cluster: false })
    await cluster.leave(member, never, { is_given_up: true })
    cluster.use([])
    for (const { docker, inside } of [manager, worker]) {
      const { Swarm } = (await docker.info()) as { Swarm: { LocalNodeState: string } }
      expect(Swarm.LocalNodeState).toBe('inactive')
      expect(inside('ip', '-o', 'link')).not.toContain('ptr-cluster')
      await poll(async () => ((await docker.info()) as { LiveRestoreEnabled: boolean }).LiveRestoreEnabled)
    }
    expect(await worker.docker.listContainers({ all: true })).toEqual([])
    expect(worker.inside('iptables', '-S')).not.toContain('PTR-')
  })
  test('one whose engine answers nobody stays a member until it is given up', async () => {
    const { manager, worker } = machines
    await cluster.join(member, never)
    cluster.use([member])
    worker.setAnswering(false)
    await expect(cluster.leave(member, never)).rejects.toMatchObject({ code: 'unavailable' })
    cluster.use([member])
    worker.setAnswering(true)
    await poll(() =>
      cluster.read(NODE).then(
        () => true,
        () => false,
      ),
    )
    worker.setAnswering(false)
    await cluster.leave(member, never, { is_given_up: true })
    worker.setAnswering(true)
    const { Swarm } = (await manager.docker.info()) as { Swarm: { LocalNodeState: string } }
    expect(Swarm.LocalNodeState).toBe('inactive')
    expect(manager.inside('ip', '-o', 'link')).not.toContain('ptr-cluster')
  })
})
