import { afterAll, beforeAll, expect, test } from 'vitest'
import { ensureBusyboxImage } from '#test/support/engine-images'
import { type Portreeve, startPortreeve } from '#test/support/portreeve'
import { baseImage } from '#test/support/template-images'
import { STACKS } from '#test/support/template-stacks'
import { walkTemplate } from '#test/support/template-walk'

let portreeve: Portreeve
/** Two at a time keep both cores busy; more would keep each other waiting. */
let free = 2
const waiting: (() => void)[] = []

beforeAll(async () => {
  await ensureBusyboxImage()
  portreeve = await startPortreeve()
  // What the images of packages are made of, while those of npm are walked.
  for (const base of ['newer', 'older'] as const) baseImage(base).catch(() => undefined)
})
afterAll(() => portreeve?.dispose())

async function inTurn(walk: () => Promise<void>): Promise<void> {
  if (free > 0) free -= 1
  else await new Promise<void>((resolve) => waiting.push(resolve))
  try {
    await walk()
  } finally {
    const next = waiting.shift()
    if (next) next()
    else free += 1
  }
}

test('ten templates are walked, each of one software', () => {
  expect(Object.keys(STACKS)).toHaveLength(10)
})

test.concurrent.each(Object.keys(STACKS))(
  '%s is deployed, used, backed up, damaged, restored, upgraded and deleted',
  { timeout: 600_000 },
  (slug) => inTurn(() => walkTemplate(portreeve, slug)),
)
