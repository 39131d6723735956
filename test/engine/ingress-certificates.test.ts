import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Certificate } from '#server/platform/ingress/ingress'
import { createSelfSigned } from '#server/platform/ingress/self-signed'
import { createTestAuthority } from '#test/support/chains'
import { openTestEdge, type TestEdge } from '../platform/ingress/edge.ts'
import { shakeHands } from '../platform/ingress/https.ts'

let edge: TestEdge
beforeAll(async () => {
  edge = await openTestEdge()
  await edge.ingress.ensure()
})
afterAll(() => edge.close())

const certificate = (id: string, ...names: [string, ...string[]]): Certificate => ({
  id,
  names,
  pem: createSelfSigned(names, new Date(), 90),
})
const shown = async (name: string) => {
  const hands = await shakeHands(edge.https, name)
  return typeof hands === 'string' ? hands : hands.certificate_name
}

test('a certificate is shown for however many names a project has, and with it every other one', async () => {
  const names = Array.from({ length: 500 }, (_, n) => `${'x'.repeat(60)}.${n}.wide.test`)
  const wide = { ...certificate('wide', '*.wide.test'), names }
  await edge.ingress.setCertificate(wide)
  await edge.ingress.apply({ routes: [], certificates: [certificate('one', 'one.test'), wide] })
  expect([await shown('one.test'), await shown(names[0]!), await shown(names[499]!)]).toEqual([
    'one.test',
    '*.wide.test',
    '*.wide.test',
  ])
  await edge.ingress.setCertificate({ ...wide, names: names.slice(0, 1) })
  expect([await shown(names[0]!), await shown(names[499]!)]).toEqual(['*.wide.test', 'portreeve.invalid'])
  await edge.ingress.removeCertificate('wide')
  expect(await shown(names[0]!)).toBe('portreeve.invalid')
})

test('one that the edge does not load is left out, and every other one is shown', async () => {
  const authority = createTestAuthority()
  const key = authority.key()
  const weak = {
    id: 'weak',
    names: ['weak.test'],
    pem: authority.under('rsa:1024', key, ['weak.test']) + key,
  }
  authority.close()
  await expect(edge.ingress.setCertificate(weak)).rejects.toThrow('The edge refused the certificate')
  await edge.ingress.apply({ routes: [], certificates: [weak, certificate('two', 'two.test')] })
  expect([await shown('weak.test'), await shown('two.test')]).toEqual(['portreeve.invalid', 'two.test'])
})
