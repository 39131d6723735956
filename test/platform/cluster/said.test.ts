import { describe, expect, test } from 'vitest'
import { subnetsSaid } from '#server/platform/cluster/said'
import { candidateSubnets, type NetworkInfo } from '#server/platform/engine/networks'
import { parseRange } from '#server/platform/engine/subnets'

const network = (Subnet: string): NetworkInfo => ({
  ...{ Id: Subnet, Name: `ptr-${Subnet}`, Created: '2026-01-01T00:00:00Z', Labels: {} },
  IPAM: { Config: [{ Subnet }] },
})
const said = (...subnets: string[]) => subnetsSaid(subnets.map(network), [parseRange('10.200.4.0/22')])

describe('networks that another server says to have', () => {
  test('are those of projects, and lie where no other one does', () => {
    expect(said('10.203.0.0/22', '10.201.8.0/22', '10.203.0.0/22')).toEqual([
      '10.201.8.0/22',
      '10.203.0.0/22',
    ])
    const others = [
      '10.200.4.0/22',
      '10.200.0.0/13',
      '10.207.0.0/25',
      '10.203.0.0/30',
      '192.168.0.0/22',
      'x/22',
    ]
    expect(said(...others)).toEqual([])
  })
  test('leave room for the next project and the next preview, however many they are', () => {
    const all: string[] = []
    for (let second = 200; second < 208; second++)
      for (let third = 0; third < 256; third += 4) all.push(`10.${second}.${third}.0/22`)
    const taken = said(...all).map(parseRange)
    for (const name of ['ptr-next', 'ptr-prv-next'])
      expect([...candidateSubnets(name, taken)].length).toBeGreaterThan(200)
  })
})
