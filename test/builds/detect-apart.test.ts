import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DETECT_WORKER, detectApart, prepareDetection } from '#server/builds/detect-apart'
import { bundleThread } from '../../cli/build-module.ts'
import { poll } from '#test/support/poll'
import { ROOT } from '#test/support/routes'

const folder = mkdtempSync(join(tmpdir(), 'portreeve-detect-'))
const thread = join(folder, 'detect.mjs')
const shop = join(folder, 'shop')
const empty = join(folder, 'empty')
beforeAll(async () => {
  mkdirSync(shop)
  mkdirSync(empty)
  writeFileSync(join(shop, 'package.json'), '{"name":"shop","scripts":{"start":"node server.js"}}')
  await bundleThread(ROOT, DETECT_WORKER, thread)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const look = (directory = shop, file = thread, owner?: string) =>
  detectApart(directory, {}, { file, ...(owner ? { owner } : {}) })
/** Threads of this file that are started by some work. */
async function started(work: () => Promise<unknown>): Promise<number> {
  let count = 0
  const onWorker = () => {
    count += 1
  }
  process.on('worker', onWorker)
  await work().finally(() => process.off('worker', onWorker))
  return count
}

it('a plan that would fill the database with each deployment is refused', async () => {
  const long = mkdtempSync(join(folder, 'long-'))
  const start = `node ${'x'.repeat(300_000)}`
  writeFileSync(join(long, 'package.json'), JSON.stringify({ name: 'long', scripts: { start } }))
  await expect(detectApart(long, {}, { file: '/no/thread' })).rejects.toMatchObject({
    name: 'DetectionError',
    message: expect.stringContaining('too long to be kept'),
  })
})

describe('a detection in a thread of its own', () => {
  it('answers the plan, with a thread that was started ahead and without one', async () => {
    prepareDetection('app_shop', thread)
    prepareDetection('app_shop', thread)
    const plans = await Promise.all([look(), look()])
    expect(plans.map(({ stack }) => stack)).toEqual(['node', 'node'])
    expect((await look()).stack).toBe('node')
  })
  it('says what it does not understand, from a thread that was started ahead, too', async () => {
    prepareDetection('app_shop', thread)
    await expect(look(empty)).rejects.toMatchObject({ name: 'DetectionError', looked_for: expect.any(Array) })
  })
  it('has the thread of the one before where that was of the same owner, and of nobody else', async () => {
    await look(shop, thread, 'app_shop')
    expect(
      await started(async () => {
        expect((await look(shop, thread, 'app_shop')).stack).toBe('node')
        await expect(look(empty, thread, 'app_shop')).rejects.toThrow()
        prepareDetection('app_shop', thread)
        expect((await look(shop, thread, 'app_shop')).stack).toBe('node')
      }),
    ).toBe(0)
    expect(await started(() => look(shop, thread, 'app_other'))).toBe(1)
    expect(await started(() => look(shop, thread))).toBe(1)
    expect(
      await started(() => {
        prepareDetection('app_third', thread)
        return look()
      }),
    ).toBe(1)
  })
  it('is not spoilt by a thread that was started ahead and ended by itself', async () => {
    const broken = join(folder, 'broken.mjs')
    const mark = join(folder, 'mark')
    writeFileSync(
      broken,
      `import { writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(mark)}, ''); throw new Error('no')`,
    )
    prepareDetection('app_shop', broken)
    await poll(async () => existsSync(mark))
    // Its end is heard a moment later; until then it would be handed out.
    await poll(() =>
      look().then(
        () => true,
        () => false,
      ),
    )
    expect((await look()).stack).toBe('node')
  })
  it('is done here where there is no file of the thread', async () => {
    prepareDetection('app_shop', join(folder, 'none.mjs'))
    expect((await look(shop, join(folder, 'none.mjs'))).stack).toBe('node')
  })
})
