import { describe, expect, test } from 'vitest'
import { createNodePolicy } from '#server/platform/cluster/node-policy'

const policy = (found: string[], own: string[] = ['192.0.2.1']) =>
  createNodePolicy(
    async () => found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    () => own,
  )

describe('the address of another server', () => {
  test('may be private, and of a name that has others of IPv6 too', async () => {
    expect(await policy([]).resolve('10.1.2.3', 22)).toEqual([{ address: '10.1.2.3', family: 4 }])
    expect(await policy(['fd00::7', '192.168.7.7']).resolve('web-2', 22)).toEqual([
      { address: '192.168.7.7', family: 4 },
    ])
  })
  test.each([
    ['127.0.0.1'],
    ['127.9.9.9'],
    ['169.254.169.254'],
    ['100.100.100.200'],
    ['168.63.129.16'],
    ['0.0.0.0'],
    ['224.0.0.1'],
    ['192.0.2.1'],
  ])('is not %s', async (address) => {
    await expect(policy([]).resolve(address, 22)).rejects.toMatchObject({ code: 'forbidden' })
    await expect(policy([address]).resolve('web-2', 22)).rejects.toMatchObject({ code: 'forbidden' })
    await expect(policy(['10.1.2.3', address]).resolve('web-2', 22)).rejects.toMatchObject({
      code: 'forbidden',
    })
  })
  test('is one of IPv4', async () => {
    await expect(policy(['2001:db8::1']).resolve('web-2', 22)).rejects.toMatchObject({ code: 'unknown_host' })
  })
})
