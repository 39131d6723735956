import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSecrets, loadMasterKey, SecretUnreadableError } from '#server/kernel/secrets'

const secrets = createSecrets(Buffer.alloc(32, 1))

describe('a sealed secret', () => {
  it.each(['', 'hunter2', 'ünïcode 🔑', 'x'.repeat(100_000), 'line\nline\0'])(
    'opens to exactly what was sealed',
    (text) => {
      expect(secrets.open(secrets.seal(text, 'env/value/env_1'), 'env/value/env_1')).toBe(text)
    },
  )
  it('looks different each time and does not show its text', () => {
    const [one, two] = [secrets.seal('hunter2', 'c'), secrets.seal('hunter2', 'c')]
    expect(one).not.toBe(two)
    expect(one).not.toContain('hunter2')
  })
  it('does not open in another row or column', () => {
    const sealed = secrets.seal('hunter2', 'env/value/env_1')
    for (const context of ['env/value/env_2', 'env/other/env_1', ''])
      expect(() => secrets.open(sealed, context)).toThrow(SecretUnreadableError)
  })
  it('does not open with another key', () => {
    expect(() => createSecrets(Buffer.alloc(32, 2)).open(secrets.seal('x', 'c'), 'c')).toThrow(
      SecretUnreadableError,
    )
  })
  it('does not open when any byte of it was changed', () => {
    const sealed = secrets.seal('hunter2', 'c')
    for (let at = 0; at < sealed.length; at += 1) {
      const changed = sealed.slice(0, at) + (sealed[at] === 'A' ? 'B' : 'A') + sealed.slice(at + 1)
      // The last character of base64url holds spare bits: a change of those alone is the same text.
      const same =
        Buffer.from(changed.split('.')[3] ?? '', 'base64url').equals(
          Buffer.from(sealed.split('.')[3]!, 'base64url'),
        ) && changed.split('.').slice(0, 3).join() === sealed.split('.').slice(0, 3).join()
      const sameNonce =
        Buffer.from(changed.split('.')[2] ?? '', 'base64url').equals(
          Buffer.from(sealed.split('.')[2]!, 'base64url'),
        ) &&
        changed.split('.')[3] === sealed.split('.')[3] &&
        changed.split('.')[1] === sealed.split('.')[1] &&
        changed.startsWith('v1.')
      if (!same && !sameNonce)
        expect(() => secrets.open(changed, 'c'), `byte ${at}`).toThrow(SecretUnreadableError)
    }
  })
  it.each(['', 'hunter2', 'v1', 'v1...', 'v2.a.b.c', `v1.${secrets.key_id}.AAAA.AAAA`])(
    'never becomes an empty or wrong text: %s',
    (text) => {
      expect(() => secrets.open(text, 'c')).toThrow(SecretUnreadableError)
    },
  )
  it('has keys of their own for other purposes', () => {
    expect(secrets.derive('tokens')).toHaveLength(32)
    expect(secrets.derive('tokens').equals(secrets.derive('csrf'))).toBe(false)
    expect(secrets.derive('tokens').equals(createSecrets(Buffer.alloc(32, 1)).derive('tokens'))).toBe(true)
  })
})

describe('the key file', () => {
  let directory: string
  const path = () => join(directory, 'keys/master.key')
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'portreeve-key-'))
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  it('is made on the first start, for the owner alone, and read on the next', () => {
    const key = loadMasterKey(path(), undefined, false)
    expect(key).toHaveLength(32)
    expect(statSync(path()).mode & 0o777).toBe(0o600)
    expect(statSync(join(directory, 'keys')).mode & 0o777).toBe(0o700)
    expect(loadMasterKey(path(), undefined, true).equals(key)).toBe(true)
  })
  it('that is missing although secrets exist stops the start and is not made anew', () => {
    expect(() => loadMasterKey(path(), undefined, true)).toThrow(
      /master\.key is missing, but the database holds secrets/,
    )
    expect(() => statSync(path())).toThrow('ENOENT')
  })
  it('that others may read stops the start, and says what to do', () => {
    loadMasterKey(path(), undefined, false)
    chmodSync(path(), 0o644)
    expect(() => loadMasterKey(path(), undefined, true)).toThrow(`chmod 600 ${path()}`)
  })
  it.each(['', 'short', Buffer.alloc(31).toString('base64'), Buffer.alloc(33).toString('base64')])(
    'that holds no whole key stops the start',
    (content) => {
      loadMasterKey(path(), undefined, false)
      writeFileSync(path(), content)
      expect(() => loadMasterKey(path(), undefined, true)).toThrow('does not hold a key of 32 bytes')
      expect(readFileSync(path(), 'utf8')).toBe(content)
    },
  )
  it('is not needed when the environment gives the key, which is the same each time', () => {
    const key = loadMasterKey(path(), 'a passphrase of at least 32 characters', true)
    expect(key.equals(loadMasterKey(path(), 'a passphrase of at least 32 characters', false))).toBe(true)
    expect(key.equals(loadMasterKey(path(), 'another passphrase of at least 32 ch', false))).toBe(false)
    expect(() => statSync(path())).toThrow('ENOENT')
  })
})
