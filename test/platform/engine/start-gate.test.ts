import { expect, test } from 'vitest'
import { createStartGate } from '#server/platform/engine/start-gate'

/** Work that ends when it is told to. */
function held(name: string, order: string[]) {
  const { promise, resolve } = Promise.withResolvers<void>()
  const work = async () => {
    order.push(`${name} begins`)
    await promise
    order.push(`${name} ends`)
  }
  return { work, end: resolve }
}

test('nothing starts while something is done alone, which waits for the starts before it', async () => {
  const gate = createStartGate()
  const order: string[] = []
  const [first, alone, second] = ['first', 'alone', 'second'].map((name) => held(name, order))
  const all = [gate.start(first!.work), gate.alone(alone!.work), gate.start(second!.work)]
  first!.end()
  await all[0]
  alone!.end()
  await all[1]
  second!.end()
  await Promise.all(all)
  expect(order).toEqual(['first', 'alone', 'second'].flatMap((name) => [`${name} begins`, `${name} ends`]))
})

test('starts go on side by side, also after work that failed', async () => {
  const gate = createStartGate()
  await expect(gate.alone(() => Promise.reject(new Error('refused')))).rejects.toThrow('refused')
  await expect(gate.start(() => Promise.reject(new Error('no such image')))).rejects.toThrow('no such image')
  const order: string[] = []
  const [first, second] = ['first', 'second'].map((name) => held(name, order))
  const all = [gate.start(first!.work), gate.start(second!.work)]
  second!.end()
  await all[1]
  first!.end()
  await all[0]
  expect(order).toEqual(['first begins', 'second begins', 'second ends', 'first ends'])
})
