import { describe, expect, it } from 'vitest'
import { effectScope, nextTick, ref } from 'vue'
import { keepDrafts, useDraft } from '@/lib/drafts'

const stored = new Map<string, string>()
keepDrafts({
  getItem: (key) => stored.get(key) ?? null,
  setItem: (key, text) => void stored.set(key, text),
  removeItem: (key) => void stored.delete(key),
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
    server.value = { name: 'shop', branch: 'dev' }
    await nextTick()
    expect(draft.value).toEqual({ name: 'typed', branch: 'main' })
    expect([draft.dirty, draft.stale]).toEqual([true, true])
    expect(draft.changes()).toEqual({ name: 'typed' })
    draft.reset()
    expect(draft.value).toEqual({ name: 'shop', branch: 'dev' })
    expect(draft.dirty).toBe(false)
  })
  it('keeps what was typed when its page is left and opened again', async () => {
    const key = newKey()
    const first = open(key, () => ({ name: 'shop' }))
    first.draft.value!.name = 'typed'
    await nextTick()
    first.leave()
    expect(open(key, () => ({ name: 'shop' })).draft.value).toEqual({ name: 'typed' })
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
