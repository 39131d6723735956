import { describe, expect, it } from 'vitest'
import { effectScope, nextTick, ref } from 'vue'
import { keepDrafts, keepDraftsOf, useDraft } from '@/lib/drafts'

const stored = new Map<string, string>()
let is_full = false
keepDrafts({
  getItem: (key) => stored.get(key) ?? null,
  setItem(key, text) {
    if (is_full) throw new DOMException('It is full.', 'QuotaExceededError')
    stored.set(key, text)
  },
  removeItem: (key) => void stored.delete(key),
  key: (at) => [...stored.keys()][at] ?? null,
  get length() {
    return stored.size
  },
})
let number = 0
const newKey = () => `form-${(number += 1)}`
const open = <T extends object>(
  key: string,
  source: () => T | undefined,
  secret: (keyof T & string)[] = [],
) => {
  const scope = effectScope()
  const draft = scope.run(() => useDraft(key, source, secret))!
  return { draft, leave: () => scope.stop() }
}

describe('a form', () => {
  it('shows what the server says for as long as nothing was edited', async () => {
    const server = ref({ name: 'shop' })
    const { draft } = open(newKey(), () => server.value)
    expect(draft.value).toEqual({ name: 'shop' })
    server.value = { name: 'store' }
    await nextTick()
    expect(draft.value).toEqual({ name: 'store' })
    expect([draft.dirty, draft.stale]).toEqual([false, false])
  })
  it('never loses what was typed to what the server says, and says that it is stale', async () => {
    const server = ref({ name: 'shop', branch: 'main' })
    const { draft } = open(newKey(), () => server.value)
    draft.value!.name = 'typed'
    server.value = { name: 'store', branch: 'main' }
    await nextTick()
    expect(draft.value).toEqual({ name: 'typed', branch: 'main' })
    expect([draft.dirty, draft.stale]).toEqual([true, true])
    expect(draft.changes()).toEqual({ name: 'typed' })
    draft.reset()
    expect(draft.value).toEqual({ name: 'store', branch: 'main' })
    expect(draft.dirty).toBe(false)
  })
  it('has what another person changed in the fields that were not edited: saving the whole takes nothing back', async () => {
    const key = newKey()
    const server = ref({ name: 'shop', replicas: 1, paths: ['a'] })
    const { draft, leave } = open(key, () => server.value)
    draft.value!.name = 'typed'
    server.value = { name: 'shop', replicas: 5, paths: ['a', 'b'] }
    await nextTick()
    expect(draft.value).toEqual({ name: 'typed', replicas: 5, paths: ['a', 'b'] })
    expect([draft.dirty, draft.stale, draft.changes()]).toEqual([true, false, { name: 'typed' }])
    // Also what changed while the page was left.
    await nextTick()
    leave()
    const later = open(key, () => ({ name: 'shop', replicas: 7, paths: [] as string[] }))
    expect(later.draft.value).toEqual({ name: 'typed', replicas: 7, paths: [] })
    later.leave()
    // What somebody else wrote in the same words is no change any more.
    const same = open(key, () => ({ name: 'typed', replicas: 7, paths: [] as string[] }))
    expect([same.draft.dirty, same.draft.stale]).toEqual([false, false])
  })
  it('keeps what was typed when its page is left and opened again', async () => {
    const key = newKey()
    const first = open(key, () => ({ name: 'shop' }))
    first.draft.value!.name = 'typed'
    await nextTick()
    first.leave()
    expect(open(key, () => ({ name: 'shop' })).draft.value).toEqual({ name: 'typed' })
  })
  it('goes on, and ends with the page, where the browser has no room to keep it', async () => {
    const key = newKey()
    const { draft } = open(key, () => ({ name: 'shop' }))
    is_full = true
    draft.value!.name = 'typed'
    await nextTick()
    is_full = false
    expect([draft.value, stored.has(`draft:${key}`)]).toEqual([{ name: 'typed' }, false])
  })
  it('is not there for whoever logs in next, in this tab or after a logout', async () => {
    const type = async () => {
      const key = newKey()
      const { draft, leave } = open(key, () => ({ name: 'shop' }))
      draft.value!.name = 'typed'
      await nextTick()
      leave()
      return key
    }
    keepDraftsOf('usr_1')
    const first = await type()
    keepDraftsOf('usr_1')
    expect(open(first, () => ({ name: 'shop' })).draft.value).toEqual({ name: 'typed' })
    keepDraftsOf('usr_2')
    expect(open(first, () => ({ name: 'shop' })).draft.value).toEqual({ name: 'shop' })
    const second = await type()
    keepDraftsOf(undefined)
    expect([...stored.keys()]).toEqual([])
    expect(open(second, () => ({ name: 'shop' })).draft.value).toEqual({ name: 'shop' })
  })
  it('is kept over a reload, but for its secrets', async () => {
    const key = newKey()
    const { draft } = open(key, () => ({ name: '', password: '' }), ['password'])
    Object.assign(draft.value!, { name: 'typed', password: 'hidden' })
    await nextTick()
    expect(stored.get(`draft:${key}`)).toContain('typed')
    expect(stored.get(`draft:${key}`)).not.toContain('hidden')
    draft.reset()
    await nextTick()
    expect(stored.has(`draft:${key}`)).toBe(false)
  })
})
