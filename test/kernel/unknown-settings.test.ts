import { describe, expect, it } from 'vitest'
import { unknownSettings } from '#server/kernel/unknown-settings'

describe('settings that nothing reads', () => {
  it.each([
    ['PORTREEVE_HTTPPORT', 'PORTREEVE_HTTP_PORT'],
    ['PORTREEVE_BASE_DOMIAN', 'PORTREEVE_BASE_DOMAIN'],
    ['PORTREEVE_TRUSTED_PROXY', 'PORTREEVE_TRUSTED_PROXIES'],
    ['PORTREEVE_DATADIR', 'PORTREEVE_DATA_DIR'],
    ['portreeve_secret_key', 'PORTREEVE_SECRET_KEY'],
  ])('%s: is probably %s', (name, nearest) => {
    expect(unknownSettings({ [name]: 'x' })).toEqual([{ name, nearest }])
  })
  it('are named without a guess when nothing is like them', () => {
    expect(unknownSettings({ PORTREEVE_COLOUR_OF_THE_SKY: 'blue' })).toEqual([
      { name: 'PORTREEVE_COLOUR_OF_THE_SKY' },
    ])
  })
  it('do not include those that are read, those of other programs, and empty ones', () => {
    const env = {
      PORTREEVE_DATA_DIR: '/x',
      PORTREEVE_CRASH_AT: '',
      PORTREEVE_LOG_LEVEL: 'debug',
      PORTREEVE_ADMIN_PASSWORD: 'wrong',
      PORT: 'x',
      PATH: '/bin',
      XPORTREEVE_A: '1',
      PORTREEVE_EMPTY: ' ',
    }
    expect(unknownSettings(env)).toEqual([])
  })
})
