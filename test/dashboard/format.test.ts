import { describe, expect, it } from 'vitest'
import { bytes, cores, duration, momentOf, plural, relativeTime, timeField, words } from '@/lib/format'
import { nameOf } from '@/lib/repository'

const NOW = Date.parse('2026-03-01T12:00:00.000Z')

it('a small share of a processor is not told as none', () => {
  expect([0, 0.000_42, 0.0987, 0.1, 1.5].map(cores)).toEqual([
    '0.00 cores',
    '0.00042 cores',
    '0.099 cores',
    '0.10 cores',
    '1.50 cores',
  ])
})

describe('times', () => {
  it.each([
    [-3, 'just now'],
    [-95, '2m ago'],
    [-7200, '2h ago'],
    [7200, 'in 2h'],
    [-86_400 * 3, '3d ago'],
    [-86_400 * 90, '1 Dec 2025'],
  ])('%s seconds from now read %s', (seconds, text) => {
    expect(relativeTime(new Date(NOW + seconds * 1000).toISOString(), NOW)).toBe(text)
  })
  it.each([
    [12, '12 ms'],
    [4210, '4.2 s'],
    [61_000, '1 min 1 s'],
    [7_500_000, '2 h 5 min'],
    [100_000_000, '1 d 3 h'],
  ])('that took %s ms read %s', (ms, text) => {
    expect(duration(ms)).toBe(text)
  })
  it('come out of a field of times as they went in, to the second', () => {
    expect(momentOf(timeField('2026-03-01T12:34:56.789Z'))).toBe('2026-03-01T12:34:56.000Z')
    expect(momentOf('no time')).toBeUndefined()
    expect(momentOf(undefined)).toBeUndefined()
  })
})

describe('numbers and names', () => {
  it.each([
    [0, '0 B'],
    [1023, '1023 B'],
    [1536, '1.5 KiB'],
    [512 * 1024 ** 2, '512 MiB'],
  ])('%s bytes read %s', (size, text) => {
    expect(bytes(size)).toBe(text)
  })
  it('agree with their noun', () => {
    expect([plural(1, 'app'), plural(1200, 'app'), plural(2, 'registry', 'registries')]).toEqual([
      '1 app',
      '1,200 apps',
      '2 registries',
    ])
  })
  it('of the API read as words', () => {
    expect(['ssh_key', 'app.created', 'dns_provider', 'acme'].map(words)).toEqual([
      'SSH key',
      'App created',
      'DNS provider',
      'ACME',
    ])
  })
  it.each([
    ['https://git.example.com/team/Shop_Front.git', 'shop-front'],
    ['git@git.example.com:team/api.git', 'api'],
    ['ghcr.io/team/web:1.2', 'web'],
    ['nginx', 'nginx'],
    ['', ''],
  ])('of an app for %s: %s', (address, name) => {
    expect(nameOf(address)).toBe(name)
  })
})
