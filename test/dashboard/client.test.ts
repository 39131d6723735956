import { expect, it } from 'vitest'
import { answerOf } from '@/api/client'

it('an answer that is no JSON, such as the login page of a proxy, is told in a sentence', async () => {
  const page = Promise.resolve().then(() => JSON.parse('<html></html>') as { data?: unknown })
  await expect(answerOf(page)).rejects.toMatchObject({
    code: 'NOT_OURS',
    message: expect.stringContaining('A proxy in front of it'),
  })
})
