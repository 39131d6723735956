import { expect, it } from 'vitest'
import * as v from 'valibot'
import { shownAnswer, writeAnswer } from '#server/http/long-lists'
import { SECRET } from '#server/kernel/schemas'
import { roundsDuring, toil } from '#test/support/rounds'

const OWNER = { is_narrowed: false, owner: 'usr_1' }
const rows = (count: number) => Array.from({ length: count }, (_, n) => ({ n, text: `é${n}`, hidden: n }))

it.each([
  [{ data: rows(0) }],
  [{ data: rows(100) }],
  [{ data: rows(101), total: 101, gone: undefined }],
  [{ page: 1, data: rows(1_234), 'a "key"': { deep: [1] } }],
  [{ data: { list: rows(300) } }],
  [rows(300)],
  [null],
  ['text'],
])('an answer is written as it would be in one go (%#)', async (answer) => {
  expect((await writeAnswer(answer, 'usr_1')).toString()).toBe(JSON.stringify(answer))
})

it('a long list leaves with what its schema lists, all of it in order, and without secrets for a narrowed key', async () => {
  const schema = v.object({
    data: v.array(v.object({ n: v.number(), text: v.pipe(v.string(), SECRET) })),
    total: v.number(),
  })
  const answer = { data: rows(1_234), total: 1_234 }
  expect(await shownAnswer(schema, answer, OWNER)).toEqual({
    data: answer.data.map(({ n, text }) => ({ n, text })),
    total: 1_234,
  })
  const narrowed = await shownAnswer(schema, answer, { ...OWNER, is_narrowed: true })
  expect(narrowed).toEqual({ data: answer.data.map(({ n }) => ({ n, text: '********' })), total: 1_234 })
  const wrong = { data: [...rows(250), { n: 'x', text: '' }], total: 251 }
  await expect(shownAnswer(schema, wrong, OWNER)).rejects.toThrow(v.ValiError)
})

it('others are served while a long list is made and written', async () => {
  const slow = { toJSON: () => (toil(), 1) }
  const data = Array.from({ length: 500 }, (_, n) => (n % 100 === 0 ? slow : n))
  const schema = v.object({
    data: v.array(
      v.pipe(
        v.unknown(),
        v.check((one) => one !== slow || (toil(), true)),
      ),
    ),
  })
  expect(await roundsDuring(() => shownAnswer(schema, { data }, OWNER))).toBeGreaterThanOrEqual(5)
  expect(await roundsDuring(() => writeAnswer({ data }, 'usr_1'))).toBeGreaterThanOrEqual(5)
})
