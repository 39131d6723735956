import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import { describe, expect, it } from 'vitest'
import { readHostname } from '#server/domains/hostname'
import { hostNameFault, readHostName } from '#server/settings/host-name'
import { fuzz, type Random } from '#test/support/random'

/** Seeds that once found something. */
const SEEDS = [3, 11, 40_961]

const PIECES = [
  'shop',
  'example',
  'com',
  'co.uk',
  'xn--mnchen-3ya',
  'xn--',
  'xn--a',
  'münchen',
  'ⓛocalhost',
  'localhost',
  'internal',
  '127',
  '0x7f',
  '０',
  '1',
  'constructor',
  '__proto__',
  '-a',
  'a-',
  '_acme-challenge',
  '*',
  'a'.repeat(63),
  'a'.repeat(64),
  'ß',
  'ﬀ',
  'İ',
  '\u200d',
  '\u0000',
  '\u202e',
  '💥',
  '',
] as const
const JOINTS = [
  '.',
  '.',
  '.',
  '.',
  '。',
  '．',
  '｡',
  '..',
  '/',
  '\\',
  ':',
  '@',
  '%2e',
  '#',
  '?',
  ' ',
  '\n',
] as const

function name(random: Random): string {
  let text = random.one(['', '', '', '*.', ' ', '.', 'http://', '['])
  for (const piece of random.many(6, () => random.one(PIECES)))
    text += (text === '' || text.endsWith('.') ? '' : random.one(JOINTS)) + piece
  if (random.some(0.1)) text += '.a'.repeat(random.below(140))
  return text + random.one(['', '', '', '.', '。', ':80', ']', '/', '\t'])
}

/** What every program between a browser and an app has to read in the same way. */
function plain(hostname: string, label: string): void {
  expect(hostname, label).toMatch(/^(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*$/)
  expect(hostname.length, label).toBeLessThanOrEqual(253)
  const bare = hostname.replace(/^\*\./, '')
  expect(isIP(bare), label).toBe(0)
  for (const part of bare.split('.')) expect(part.length, label).toBeLessThanOrEqual(63)
  expect(new URL(`http://${bare}/`).hostname, label).toBe(bare)
  expect(domainToASCII(bare), label).toBe(bare)
}
const isSentence = (text: string, label: string) => expect(text, label).toMatch(/^[a-z].*\.$/s)

describe('whatever a host name is written like', () => {
  it('the name of a domain is refused with a sentence, or is one that every program reads alike', async () => {
    await fuzz(SEEDS, 8, (random, seed) => {
      const text = name(random)
      const label = `${seed}: ${JSON.stringify(text)}`
      const verdict = readHostname(text)
      if ('refused' in verdict) return isSentence(verdict.refused, label)
      plain(verdict.hostname, label)
      expect(readHostname(verdict.hostname), label).toEqual(verdict)
      expect(readHostname(verdict.hostname.toUpperCase()), label).toEqual(verdict)
      return undefined
    })
  }, 600_000)
  it('so is that of the dashboard', async () => {
    await fuzz(SEEDS, 8, (random, seed) => {
      const text = name(random)
      const label = `${seed}: ${JSON.stringify(text)}`
      const fault = hostNameFault(text)
      if (fault !== undefined) return isSentence(fault, label)
      plain(readHostName(text), label)
      expect(readHostName(readHostName(text)), label).toBe(readHostName(text))
      return undefined
    })
  }, 600_000)
})
