import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { compileOnceBusy } from '#server/start/compilers'
import { ALLOCATOR, NODE_ARGUMENTS } from '#server/start/process-arguments'
import { ROOT } from '#test/support/routes'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('a server that idles never uses the compilers, and one that was busy for two seconds uses them once', () => {
  const use = vi.fn()
  const shares = [0, 0.1, 0.29, 0.6, 0, 0.9]
  compileOnceBusy({ use, worked: () => shares.shift() ?? 0 })
  vi.advanceTimersByTime(6000)
  expect(use).not.toHaveBeenCalled()
  vi.advanceTimersByTime(9000)
  expect(use).toHaveBeenCalledTimes(1)
})

it('a server that ended looks no more', () => {
  const use = vi.fn()
  compileOnceBusy({ use, worked: () => 1 })()
  vi.advanceTimersByTime(9000)
  expect(use).not.toHaveBeenCalled()
})

it.each(['package.json', 'scripts/shell/run-server.sh', 'scripts/shell/service.sh'])(
  '%s starts Node with the arguments that were measured',
  (file) => {
    expect(readFileSync(join(ROOT, file), 'utf8')).toContain(`${NODE_ARGUMENTS.join(' ')} `)
  },
)

it.each(['scripts/shell/run-server.sh', 'scripts/shell/service.sh'])('%s tells the allocator', (file) => {
  const told = Object.entries(ALLOCATOR).map(([name, value]) => `${name}=${value}`)
  expect(readFileSync(join(ROOT, file), 'utf8')).toContain(told.join(' '))
})
