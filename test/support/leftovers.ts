import { rmSync } from 'node:fs'
import { afterAll } from 'vitest'
import { kernel_folders } from './kernel-folders.ts'

/**
 * Work that a test did not wait for makes its folder anew after `dispose`, and some tests end nothing: what is left
 * goes at the end of each file, whose own hooks come before this one.
 */
afterAll(() => {
  for (const folder of kernel_folders) rmSync(folder, { recursive: true, force: true })
})
