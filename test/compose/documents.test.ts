import { expect, it } from 'vitest'
import { renderFeatures } from '#server/compose/render-features'

it('docs/compose.md lists every feature as the parser has it (vitest -u writes it)', async () => {
  await expect(renderFeatures()).toMatchFileSnapshot('../../docs/compose.md')
})
