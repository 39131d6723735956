import { expect, it } from 'vitest'
import { createClientAddress } from '#server/identity/client-address'

const PROOF = 'ab'.repeat(32)
const client = createClientAddress(['10.0.0.0/8'], PROOF)

it('the edge is believed about its client because it knows the secret', () => {
  expect(
    client('127.0.0.1', {
      edge_proof: PROOF,
      real_ip: '203.0.113.7',
      forwarded_proto: 'https',
      forwarded_for: '6.6.6.6, 203.0.113.7',
    }),
  ).toEqual({ address: '203.0.113.7', secure: true, by_edge: true })
  expect(client('127.0.0.1', { edge_proof: PROOF, real_ip: '2001:db8::7', forwarded_proto: 'http' })).toEqual(
    {
      address: '2001:db8::7',
      secure: false,
      by_edge: true,
    },
  )
  expect(client('127.0.0.1', { edge_proof: PROOF, real_ip: 'nonsense' })).toEqual({
    address: '127.0.0.1',
    secure: false,
    by_edge: true,
  })
})

it.each([undefined, '', 'ab', PROOF.toUpperCase(), `${PROOF}0`, 'é'.repeat(32)])(
  'whoever is on this machine without it (%s) is not',
  (edge_proof) => {
    expect(
      client('127.0.0.1', {
        ...(edge_proof === undefined ? {} : { edge_proof }),
        real_ip: '203.0.113.7',
        forwarded_for: '203.0.113.7',
        forwarded_proto: 'https',
      }),
    ).toEqual({ address: '127.0.0.1', secure: false })
  },
)

it('a trusted proxy is believed by its address, about the last hop that nobody vouches for', () => {
  expect(
    client('10.1.1.1', {
      forwarded_for: '6.6.6.6, 203.0.113.7, 10.2.2.2',
      forwarded_proto: 'https',
      real_ip: '6.6.6.6',
    }),
  ).toEqual({ address: '203.0.113.7', secure: true })
})
