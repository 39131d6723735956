import { describe, expect, test } from 'vitest'
import {
  changesOf,
  hardwareAddress,
  innerAddresses,
  readWays,
  waysTo,
} from '#server/platform/cluster/tunnel-plan'

const NOTHING = { routes: [], neighbours: [], forwards: [] }
const ONE = { address: '192.0.2.7', inner: '10.216.9.4', subnets: ['10.200.8.0/22'] }

describe('addresses inside the tunnel', () => {
  test('follow from the ids, whatever the order, and are each one server’s', () => {
    const ids = Array.from({ length: 500 }, (_, index) => `node_${index}`)
    const found = innerAddresses(ids)
    expect(innerAddresses([...ids].reverse())).toEqual(found)
    expect(new Set(found.values()).size).toBe(500)
    expect([...found.values()].filter((address) => /\.(0|255)$|^10\.216\.0\./.test(address))).toEqual([])
    expect(new Set([...found.values()].map(hardwareAddress)).size).toBe(500)
  })
})

describe('the ways to members', () => {
  test('are made where there are none, and left alone where they are there', () => {
    const { ip, bridge } = changesOf(NOTHING, waysTo([ONE], []), '10.216.0.1')
    expect(ip).toEqual([
      'neigh replace 10.216.9.4 lladdr 02:70:0a:d8:09:04 dev ptr-cluster nud permanent',
      'route replace 10.216.9.4 dev ptr-cluster src 10.216.0.1',
      'route replace 10.200.8.0/22 via 10.216.9.4 dev ptr-cluster src 10.216.0.1 onlink',
    ])
    expect(bridge).toEqual(['fdb replace 02:70:0a:d8:09:04 dev ptr-cluster dst 192.0.2.7 self permanent'])
    const found = readWays({
      routes: '10.200.8.0/22 via 10.216.9.4 src 10.216.0.1 onlink \n10.216.9.4 scope link src 10.216.0.1 \n',
      neighbours: '10.216.9.4 lladdr 02:70:0a:d8:09:04 PERMANENT \n',
      forwards: '02:70:0a:d8:09:04 dst 192.0.2.7 self permanent\n',
    })
    expect(changesOf(found, waysTo([ONE], found.routes), '10.216.0.1')).toEqual({ ip: [], bridge: [] })
    expect(changesOf(found, waysTo([], found.routes), '10.216.0.1')).toEqual({
      ip: [
        'route del 10.200.8.0/22 dev ptr-cluster',
        'route del 10.216.9.4 dev ptr-cluster',
        'neigh del 10.216.9.4 dev ptr-cluster',
      ],
      bridge: ['fdb del 02:70:0a:d8:09:04 dev ptr-cluster dst 192.0.2.7 self'],
    })
  })
  test('to networks of a member that was not asked yet stay as they are', () => {
    const routes = ['10.216.9.4', '10.200.8.0/22 via 10.216.9.4', '10.200.12.0/22 via 10.216.1.1']
    expect(waysTo([{ ...ONE, subnets: undefined }], routes).routes).toEqual(routes.slice(0, 2))
  })
})
