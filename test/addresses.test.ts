import type { NetworkInterfaceInfo } from 'node:os'
import { expect, it } from 'vitest'
import { usableAddresses } from '#server/addresses'

const found = (address: string, internal = false) => ({ address, internal }) as NetworkInterfaceInfo

it('names shall lead to addresses of this machine that others can reach, not to those towards its containers', () => {
  expect(usableAddresses({
    lo: [found('127.0.0.1', true), found('::1', true)],
    eth0: [found('192.168.1.7'), found('fd12::7'), found('fe80::1')],
    wg0: [found('10.8.0.1')],
    docker0: [found('172.17.0.1'), found('fe80::42')],
    'br-1f2e3d4c5b6a': [found('10.201.3.1')],
    cni0: [found('10.88.0.1')],
  })).toEqual(['192.168.1.7', 'fd12::7', '10.8.0.1'])
})
