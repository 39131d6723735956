import { expect, it } from 'vitest'
import { clusterVerdict } from '#server/nodes/login'
import { EngineError } from '#server/platform/engine/engine'

it('an engine that does not answer is told as that, and no fault of Portreeve', () => {
  const error = new EngineError('unavailable', 'The container engine does not answer.', 'Check DOCKER_HOST.')
  expect(clusterVerdict(error)).toMatchObject({
    kind: 'system',
    code: 'node_failed',
    message: 'The container engine does not answer.',
    hint: expect.stringContaining('the engine of that server'),
  })
})
