import { rmSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, vi } from 'vitest'
import { kernel_folders } from './kernel-folders.ts'

/** More turns of the event loop than any work takes that ends by itself once its kernel is closed. */
const PATIENCE_TURNS = 1000

/**
 * Work that a test did not wait for makes its folder anew after `dispose`, and some tests end nothing: what is left
 * goes at the end of each file, whose own hooks come before this one.
 */
afterAll(() => {
  for (const folder of kernel_folders) rmSync(folder, { recursive: true, force: true })
})

/**
 * A loop that nothing ends takes a processor from all files after this one, and never lets the time of a test pass
 * that has it in its hand.
 */
afterAll(async () => {
  vi.useRealTimers()
  const goesOn = () => process.getActiveResourcesInfo().includes('Immediate')
  for (let turns = 0; turns < PATIENCE_TURNS; turns += 1) {
    await turn()
    if (!goesOn()) return
  }
  throw new Error('Something that this file began goes on in every turn of the event loop.')
})
