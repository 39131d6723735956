import { describe, expect, it } from 'vitest'
import { BLANK, bodyOf, choicesOf, shownKey, stateOf } from '../../dashboard/src/features/nodes/server.ts'

const KEY = `SHA256:${'a'.repeat(43)}`

describe('the form that adds a server', () => {
  const form = { ...BLANK, address: ' 10.9.8.7 ', ssh_key_id: 'ssh_1' }
  it('asks without a key first, and names the one that was approved then', () => {
    expect(bodyOf(form, undefined)).toEqual({
      address: '10.9.8.7',
      port: 22,
      user: 'root',
      ssh_key_id: 'ssh_1',
    })
    expect(bodyOf({ ...form, name: 'worker-1' }, KEY)).toMatchObject({ name: 'worker-1', host_key: KEY })
  })
  it('asks to approve a key where the refusal shows one, and nothing else', () => {
    expect(shownKey({ host_key: KEY })).toBe(KEY)
    expect(shownKey({ host_key: 'Must be a fingerprint such as SHA256:…' })).toBeUndefined()
    expect(shownKey({ disk: '4.0 GiB of its disk are free.' })).toBeUndefined()
  })
})

describe('a server', () => {
  it('that is emptied is shown as drained while it answers', () => {
    expect(stateOf({ state: 'ready', availability: 'drain' })).toBe('drained')
    expect(stateOf({ state: 'unreachable', availability: 'drain' })).toBe('unreachable')
    expect(stateOf({ state: 'ready', availability: 'active' })).toBe('ready')
  })
  it('offers what its state allows, and that of Portreeve nothing', () => {
    const of = (state: 'joining' | 'ready' | 'failed' | 'removing', availability: 'active' | 'drain') =>
      choicesOf({ role: 'worker', state, availability })
    expect(of('ready', 'active')).toEqual({ drain: true, activate: false, login: true, remove: true })
    expect(of('ready', 'drain')).toEqual({ drain: false, activate: true, login: true, remove: true })
    expect(of('failed', 'active')).toEqual({ drain: false, activate: false, login: false, remove: true })
    expect(of('removing', 'active')).toEqual({ drain: false, activate: true, login: false, remove: false })
    expect(choicesOf({ role: 'manager', state: 'ready', availability: 'active' })).toEqual({
      drain: false,
      activate: false,
      login: false,
      remove: false,
    })
  })
})
