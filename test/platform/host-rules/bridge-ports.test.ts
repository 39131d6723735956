import { execFileSync } from 'node:child_process'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { run } from '#server/kernel/process'
import { type BridgePorts, createBridgePorts } from '#server/platform/host-rules/bridge-ports'
import { poll } from '#test/support/poll'

const ip = (...args: string[]) =>
  execFileSync('ip', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
function canMakeNetworks(): boolean {
  try {
    ip('netns', 'add', 'ptr-probe')
    ip('netns', 'del', 'ptr-probe')
    return true
  } catch {
    return false
  }
}

describe.skipIf(!canMakeNetworks())('ports of a bridge', () => {
  const namespace = `ptr-ports-${process.pid}`
  const network = `/run/netns/${namespace}`
  const inside = (...args: string[]) => ip('-n', namespace, ...args)
  let ports: BridgePorts
  beforeEach(() => {
    ip('netns', 'add', namespace)
    for (const bridge of ['docker0', 'br-project']) inside('link', 'add', bridge, 'type', 'bridge')
    ports = createBridgePorts(run)
  })
  afterEach(() => {
    ports.stop()
    ip('netns', 'del', namespace)
  })
  function plug(name: string, bridge: string): void {
    inside('link', 'add', name, 'type', 'veth', 'peer', 'name', `${name}p`)
    inside('link', 'set', name, 'master', bridge)
  }
  const isApart = (name: string) => / isolated on /.test(inside('-d', '-o', 'link', 'show', 'dev', name))

  it('that are there are set apart, and each further one as soon as it is there', async () => {
    plug('veth1', 'docker0')
    plug('veth2', 'br-project')
    await ports.keepApart('docker0', network)
    expect([isApart('veth1'), isApart('veth2')]).toEqual([true, false])
    // The watch has begun once it sees the first one.
    plug('veth3', 'docker0')
    await poll(() => isApart('veth3'))
    plug('veth4', 'br-project')
    plug('veth5', 'docker0')
    await poll(() => isApart('veth5'))
    expect(isApart('veth4')).toBe(false)
  })
  it('are set apart by the next call as well, where a change was not heard of', async () => {
    await ports.keepApart('docker0', network)
    ports.stop()
    plug('veth1', 'docker0')
    expect(isApart('veth1')).toBe(false)
    await ports.keepApart('docker0', network)
    expect(isApart('veth1')).toBe(true)
  })
  it('are set apart again by the next call, where somebody joined them', async () => {
    plug('veth1', 'docker0')
    await ports.keepApart('docker0', network)
    inside('link', 'set', 'dev', 'veth1', 'type', 'bridge_slave', 'isolated', 'off')
    await ports.keepApart('docker0', network)
    expect(isApart('veth1')).toBe(true)
  })
  it('of a bridge that is not there yet are none', async () => {
    await ports.keepApart('docker1', network)
    inside('link', 'add', 'docker1', 'type', 'bridge')
    plug('veth1', 'docker1')
    await ports.keepApart('docker1', network)
    expect(isApart('veth1')).toBe(true)
  })
  it('that cannot be set apart are told of, with the reason', async () => {
    await expect(ports.keepApart('docker0', '/run/netns/ptr-nowhere')).rejects.toThrow(/ip says: /)
  })
})
