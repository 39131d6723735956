import { X509Certificate } from 'node:crypto'
import { expect, test } from 'vitest'
import {
  checkCertificate,
  parseCertificateList,
  renderCertificateList,
  storedAs,
} from '#server/platform/ingress/certificates'
import { createSelfSigned } from '#server/platform/ingress/self-signed'

const now = new Date('2026-03-01T12:00:00Z')
const pem = createSelfSigned(['a.test', '*.b.test'], now, 90)

test('a self-signed certificate is valid for its names and its time, and signed by its own key', () => {
  const certificate = new X509Certificate(pem)
  expect(certificate.verify(certificate.publicKey)).toBe(true)
  expect([
    certificate.checkHost('a.test'),
    certificate.checkHost('x.b.test'),
    certificate.checkHost('c.test'),
  ]).toEqual(['a.test', '*.b.test', undefined])
  expect([new Date(certificate.validFrom) <= now, new Date(certificate.validTo).toISOString()]).toEqual([
    true,
    '2026-05-30T12:00:00.000Z',
  ])
  expect(createSelfSigned(['a.test'], now, 90)).not.toBe(createSelfSigned(['a.test'], now, 90))
})

test('a certificate is refused unless the edge can use it', () => {
  const [chain = ''] = pem.split('-----BEGIN PRIVATE KEY')
  const other_key = createSelfSigned(['a.test'], now, 90)
    .slice(chain.length - 200)
    .replace(/^[^]*?(-----BEGIN PRIVATE KEY)/, '$1')
  checkCertificate({ id: 'cert_1', names: ['a.test', '*.b.test'], pem })
  expect(() => checkCertificate({ id: 'cert_1', names: ['a.test'], pem: chain + other_key })).toThrow(
    'The certificate of a.test cannot be used: its key belongs to another certificate.',
  )
  expect(() => checkCertificate({ id: 'cert_1', names: ['a.test'], pem: chain })).toThrow('that can be read')
  expect(() => checkCertificate({ id: 'cert_1', names: ['a.test'], pem: `${pem}\n\nset server` })).toThrow(
    'not a list of PEM blocks',
  )
  expect(() => checkCertificate({ id: 'cert_1', names: ['a.test'], pem: pem.repeat(30) })).toThrow(
    'longer than 15000 bytes',
  )
  expect(() => checkCertificate({ id: 'cert_1', names: ['a.test\nb'], pem })).toThrow(
    'not lower-case DNS names',
  )
  expect(() => checkCertificate({ id: '../x', names: ['a.test'], pem })).toThrow('its id')
})

test('the list of certificates is read back as it was written, and a new content has a new file', () => {
  const certificate = { id: 'cert_1', names: ['a.test', '*.b.test'], pem }
  const [stored] = storedAs(certificate)
  expect(parseCertificateList(renderCertificateList([stored!]))).toEqual([stored])
  expect(storedAs({ ...certificate, names: ['a.test'] })[0]!.path).not.toBe(stored!.path)
  expect(storedAs({ ...certificate, pem: `${pem}x` })[0]!.path).not.toBe(stored!.path)
})

test('a certificate that is shown for more names than one command of the edge takes is there several times', () => {
  const names = Array.from({ length: 500 }, (_, n) => `${'x'.repeat(60)}.${n}.b.test`)
  const stored = storedAs({ id: 'cert_1', names, pem })
  expect(stored.flatMap((one) => one.names)).toEqual(names)
  expect(new Set(stored.map(({ path }) => path)).size).toBe(stored.length)
  for (const line of renderCertificateList(stored).split('\n')) expect(line.length).toBeLessThan(13_000)
})
