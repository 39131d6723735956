import type { NetworkInterfaceInfo } from 'node:os'
import { describe, expect, it } from 'vitest'
import {
  addressDomain,
  createAddresses,
  localAddress,
  reachedAt,
  usableAddresses,
} from '#server/addresses/service'
import { loadConfig } from '#server/kernel/config'

const found = (address: string, internal = false) => ({ address, internal }) as NetworkInterfaceInfo

it('names shall lead to addresses of this machine that others can reach, not to those towards its containers', () => {
  expect(
    usableAddresses({
      lo: [found('127.0.0.1', true), found('::1', true)],
      eth0: [found('192.168.1.7'), found('fd12::7'), found('fe80::1')],
      wg0: [found('10.8.0.1')],
      docker0: [found('172.17.0.1'), found('fe80::42')],
      'br-1f2e3d4c5b6a': [found('10.201.3.1')],
      cni0: [found('10.88.0.1')],
    }),
  ).toEqual(['192.168.1.7', 'fd12::7', '10.8.0.1'])
})

it.each([
  ['0.0.0.0', '192.168.1.7'],
  ['::', '192.168.1.7'],
  ['127.0.0.1', '127.0.0.1'],
  ['fd12::7', '[fd12::7]'],
  ['[fd12::7]', '[fd12::7]'],
  ['panel.example.com', 'panel.example.com'],
])(
  'without a public URL, links lead to where a server that listens on %s is reached: %s',
  (host, address) => {
    expect(
      reachedAt(host, {
        lo: [found('127.0.0.1', true)],
        docker0: [found('172.17.0.1')],
        eth0: [found('fd12::7'), found('192.168.1.7')],
      }),
    ).toBe(address)
  },
)
it('a server without any address for others is reached on the machine itself', () => {
  expect(reachedAt('0.0.0.0', { lo: [found('127.0.0.1', true)] })).toBe('127.0.0.1')
})
it('links lead to the public URL that was chosen, else to where the server is reached', () => {
  const url = (env: Record<string, string>) =>
    createAddresses(loadConfig(env), () => ({
      base_domain: null,
      dashboard_domain: null,
    })).public_url()
  expect(url({ PORTREEVE_PUBLIC_URL: 'https://panel.example.com' })).toBe('https://panel.example.com')
  expect(url({ HOST: '192.0.2.7', PORT: '9100' })).toBe('http://192.0.2.7:9100')
})

it.each([
  ['panel.apps.example.com', 'apps.example.com', true],
  ['apps.example.com', 'apps.example.com', false],
  ['panel.example.com', 'apps.example.com', false],
  ['evilapps.example.com', 'apps.example.com', false],
  [null, 'apps.example.com', false],
])('a dashboard %s beside apps below %s is warned about: %s', (dashboard_domain, base_domain, is_warned) => {
  const addresses = createAddresses(loadConfig({}), () => ({ dashboard_domain, base_domain }))
  expect(addresses.warnings()).toEqual(
    is_warned ? [expect.stringMatching(/^The dashboard .* lies below the base domain of apps/)] : [],
  )
})

describe('the base domain of apps', () => {
  const lan = {
    lo: [{ address: '127.0.0.1', family: 'IPv4', internal: true }],
    eth0: [{ address: '192.168.1.20', family: 'IPv4', internal: false }],
  } as unknown as Parameters<typeof localAddress>[1]
  it('is of the address in the local network where there is no public one, so that another machine opens what was printed', () => {
    expect(addressDomain(localAddress('', lan))).toBe('192.168.1.20.sslip.io')
    expect(`http://${localAddress('', lan)}`).toBe(`http://${reachedAt('', lan)}`)
  })
  it('is localhost on a machine that listens for itself only, or has no other address', () => {
    expect(addressDomain(localAddress('127.0.0.1', lan))).toBe('localhost')
    expect(addressDomain(localAddress('', { lo: lan.lo }))).toBe('localhost')
  })
})
