import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { placeKeys } from '../../cli/restored-keys.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ptr-keys-'))
  for (const name of ['from', 'keys']) mkdirSync(join(folder, name))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const put = (path: string, text: string) => writeFileSync(join(folder, path), text, { mode: 0o600 })
const place = (names: string[]) => placeKeys(join(folder, 'from'), names, join(folder, 'keys'))
const kept = () =>
  Object.fromEntries(
    readdirSync(join(folder, 'keys')).map((name) => [
      name.replace(/before-restore-[0-9a-f]{12}$/, 'before-restore'),
      readFileSync(join(folder, 'keys', name), 'utf8'),
    ]),
  )

describe('keys of an archive', () => {
  it('take their places, both of them where a rotation was under way', () => {
    put('from/secret.key', 'one')
    put('from/secret.key.next', 'two')
    expect(place(['portreeve.db', 'secret.key', 'secret.key.next'])).toEqual([])
    expect(kept()).toEqual({ 'secret.key': 'one', 'secret.key.next': 'two' })
  })
  it('never write over other keys, without which a database that was moved away is lost', () => {
    put('keys/secret.key', 'of the database that was moved away')
    put('keys/secret.key.next', 'of its rotation')
    put('from/secret.key', 'of the archive')
    const moved = place(['portreeve.db', 'secret.key'])
    expect(kept()).toEqual({
      'secret.key': 'of the archive',
      'secret.key.before-restore': 'of the database that was moved away',
      'secret.key.next.before-restore': 'of its rotation',
    })
    expect(moved.map((path) => path.startsWith(join(folder, 'keys/secret.key')))).toEqual([true, true])
  })
  it('change nothing where the same ones are there, or where the archive has none', () => {
    put('keys/secret.key', 'same')
    put('from/secret.key', 'same')
    expect([place(['portreeve.db', 'secret.key']), kept()]).toEqual([[], { 'secret.key': 'same' }])
    expect([place(['portreeve.db']), kept()]).toEqual([[], { 'secret.key': 'same' }])
  })
})
