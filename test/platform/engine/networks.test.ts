import { describe, expect, test } from 'vitest'
import { createDockerEngine } from '#server/platform/engine/docker'
import { networkOf } from '#server/platform/engine/network-name'
import { candidateSubnets, hostRanges } from '#server/platform/engine/networks'
import { formatAddress, overlaps, parseAddress, parseRange } from '#server/platform/engine/subnets'
import { createEngineStandIn, json } from '#test/support/engine-stand-in'

const text = ({ first, prefix }: { first: number; prefix: number }) => `${formatAddress(first)}/${prefix}`

describe('subnets of project networks', () => {
  test('are all different, all in the range, and the same for a name each time', () => {
    const all = [...candidateSubnets('prj_a', [])].map(text)
    expect(all).toHaveLength(448)
    expect(new Set(all).size).toBe(448)
    expect(all.every((subnet) => /^10\.20[0-6]\.\d+\.0\/22$/.test(subnet))).toBe(true)
    expect([...candidateSubnets('prj_a', [])].map(text)).toEqual(all)
    expect([...candidateSubnets('prj_b', [])].map(text)[0]).not.toBe(all[0])
  })

  test('leave out what networks and the host use already, also when it is larger or smaller', () => {
    const [first] = candidateSubnets('prj_a', [])
    expect([...candidateSubnets('prj_a', [first!])]).toHaveLength(447)
    expect([
      ...candidateSubnets('prj_a', [parseRange(`${formatAddress(first!.first + 5)}/32`)]),
    ]).toHaveLength(447)
    expect(
      [...candidateSubnets('prj_a', [parseRange('10.200.0.0/14')])].every(
        (slot) => slot.first >= parseAddress('10.204.0.0'),
      ),
    ).toBe(true)
    expect([...candidateSubnets('prj_a', [parseRange('10.0.0.0/8')])]).toEqual([])
  })

  test('of previews are others, and smaller: however many those have, every project finds its own', () => {
    const name = networkOf({ project_id: 'prj_a', preview_id: 'prv_1' })
    const previews = [...candidateSubnets(name, [])]
    expect(new Set(previews.map(text)).size).toBe(512)
    expect(previews.every((subnet) => /^10\.207\.\d+\.(0|128)\/25$/.test(text(subnet)))).toBe(true)
    expect([...candidateSubnets(networkOf({ project_id: 'prj_b' }), previews)]).toHaveLength(448)
  })

  test('are compared as ranges', () => {
    expect(text(parseRange('10.1.2.3/24'))).toBe('10.1.2.0/24')
    expect(overlaps(parseRange('10.0.0.0/24'), parseRange('10.0.1.0/24'))).toBe(false)
    expect(overlaps(parseRange('10.0.0.0/8'), parseRange('10.255.0.0/16'))).toBe(true)
    expect(overlaps(parseRange('255.255.255.0/24'), parseRange('255.255.255.255/32'))).toBe(true)
  })

  test('know the ranges of this host', () => {
    expect(hostRanges().map(text)).toContain('127.0.0.0/8')
  })
})

describe('networks of projects', () => {
  test('are made once for callers at once, whatever the engine allows', async () => {
    const networks: object[] = []
    let most = 0
    const server = await createEngineStandIn(({ method, path, body }, response) => {
      if (method === 'DELETE') {
        const at = networks.findIndex((network) => path === `/networks/${(network as { Id: string }).Id}`)
        networks.splice(at, 1)
        return void response.writeHead(204).end()
      }
      if (method === 'POST') {
        const { Name, Labels, IPAM } = JSON.parse(body)
        networks.push({ Id: `n${networks.length}`, Name, Created: new Date().toISOString(), Labels, IPAM })
        most = Math.max(most, networks.length)
        return json(response, { Id: 'n' }, 201)
      }
      json(response, networks)
    })
    const engine = createDockerEngine({ docker_host: server.docker_host, builder: 'classic' })
    try {
      await Promise.all(Array.from({ length: 5 }, () => engine.ensureNetwork('ptr-prj_a', {})))
      expect(most).toBe(1)
      expect(networks).toHaveLength(1)
    } finally {
      await engine.close()
      await server.close()
    }
  })
})
