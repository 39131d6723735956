import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { effectScope } from 'vue'
import { SHOWN_S, useRevealed } from '@/lib/revealed'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const open = (ask: () => Promise<string | undefined>) => {
  const scope = effectScope()
  return { ...scope.run(() => useRevealed(ask))!, leave: () => scope.stop() }
}

describe('what was revealed', () => {
  it('hides by itself after half a minute, counted anew each time', async () => {
    const { shown, reveal } = open(async () => 'secret')
    await reveal()
    vi.advanceTimersByTime(SHOWN_S * 1000 - 1)
    expect(shown.value).toBe('secret')
    await reveal()
    vi.advanceTimersByTime(SHOWN_S * 1000 - 1)
    expect(shown.value).toBe('secret')
    vi.advanceTimersByTime(1)
    expect(shown.value).toBeUndefined()
  })
  it('hides when it is told to, and when its page is left', async () => {
    const { shown, reveal, hide, leave } = open(async () => 'secret')
    await reveal()
    hide()
    expect(shown.value).toBeUndefined()
    await reveal()
    leave()
    expect(shown.value).toBeUndefined()
  })
  it('is not shown when it comes after it was hidden again, nor when it was refused', async () => {
    let answer!: (text: string) => void
    const late = open(() => new Promise<string>((resolve) => (answer = resolve)))
    const asked = late.reveal()
    late.hide()
    answer('secret')
    await asked
    expect(late.shown.value).toBeUndefined()
    const refused = open(async () => undefined)
    await refused.reveal()
    expect(refused.shown.value).toBeUndefined()
  })
})
