import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createPace } from '#server/kernel/pace'
import { hmacOf } from '#server/webhooks/body'
import { createReader, WEBHOOK_WORKER } from '#server/webhooks/read-apart'
import { ROOT } from '#test/support/routes'
import { roundsDuring } from '#test/support/rounds'
import { bundleThread } from '../../cli/build-module.ts'

const folder = mkdtempSync(join(tmpdir(), 'portreeve-webhook-'))
const thread = join(folder, WEBHOOK_WORKER)
beforeAll(() => bundleThread(ROOT, WEBHOOK_WORKER, thread), 60_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A push of many files, as GitHub tells it. */
const push = (files: number) => ({
  ref: 'refs/heads/main',
  after: '2'.repeat(40),
  head_commit: { message: 'Change' },
  commits: [
    {
      id: 'x',
      message: 'Change',
      added: Array.from({ length: files }, (_, n) => `src/${n}.ts`),
      modified: [],
    },
  ],
  repository: { clone_url: 'https://git.example.com/team/shop.git' },
})
const delivered = (text: string) => ({
  forge: 'github',
  name: 'push',
  content_type: 'application/json',
  body: Buffer.from(text),
})

describe('a delivery', () => {
  it('that is long is read in a thread, while others are served, and says the same as a short one', async () => {
    const text = JSON.stringify(push(100_000))
    const here = await createReader('/no/thread')('prj_1', delivered(text))
    const read = createReader(thread)
    let event: unknown
    const rounds = await roundsDuring(async () => void (event = await read('prj_1', delivered(text))))
    expect(event).toEqual(here)
    expect(event).toMatchObject({ kind: 'push', name: 'main', changed: undefined })
    expect(rounds).toBeGreaterThan(1)
    expect(await read('prj_1', delivered(JSON.stringify(push(2))))).toMatchObject({
      changed: ['src/0.ts', 'src/1.ts'],
    })
  })
  it.each([
    ['is no JSON', 'x'.repeat(200_000)],
    ['has more values than any push', `[${'1,'.repeat(400_000)}1]`],
  ])('that is long and %s starts nothing, and says so', async (_what, text) => {
    expect(await createReader(thread)('prj_1', delivered(text))).toEqual({
      kind: 'other',
      reason: 'The body is no JSON that can be read.',
    })
  })
  it('of 25 MB has its signature worked out with others served in between', async () => {
    const body = Buffer.alloc(25_000_000, 'a')
    // A processor of which each part takes its time, as this machine's may or may not be.
    let at_ms = 0
    const pace = createPace('prj_1', () => (at_ms += 10))
    const rounds = await roundsDuring(() => hmacOf(body, 'secret', pace))
    expect(rounds).toBeGreaterThan(1)
  })
})
