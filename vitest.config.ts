import { resolve } from 'node:path'
import { defineConfig } from 'vitest/config'
import { LaneSequencer } from './scripts/lanes.ts'

/**
 * Shared machines of CI stall for seconds, and tests against real programs may fail by it; the report names each
 * test that needed another attempt. On a developer's machine every failure shows.
 */
const retry = process.env.CI ? 2 : 0

/**
 * `unit` needs nothing; `engine` needs a container engine and the images of `npm run images`; `e2e` also the
 * built server.
 */
export default defineConfig({
  // Modules that exist in a build only.
  resolve: {
    alias: {
      '#endpoints': resolve('test/support/virtual-endpoints.ts'),
      '#migrations': resolve('test/support/virtual-migrations.ts'),
      '#templates': resolve('test/support/virtual-templates.ts'),
      '#api-document': resolve('test/support/virtual-api-document.ts'),
      '#dashboard': resolve('test/support/virtual-dashboard.ts'),
      '@': resolve('dashboard/src'),
    },
  },
  test: {
    pool: 'forks',
    // `isolate: false` below: loading the server anew for each of 400 files takes as long as all that they test.
    // By itself a condition has a second to come true, which a machine that stalls does not give.
    expect: { poll: { timeout: 60_000 } },
    sequence: { sequencer: LaneSequencer },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/engine/**', 'test/e2e/**'],
          setupFiles: ['test/support/leftovers.ts'],
          // Guards against tests that hang, no measure of speed: in CI these run on what others leave of two cores.
          testTimeout: 240_000,
          hookTimeout: 240_000,
          // They share nothing, and wait for a third of their time.
          maxWorkers: 3,
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: 'engine',
          retry,
          include: ['test/engine/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          fileParallelism: false,
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: 'e2e',
          retry,
          include: ['test/e2e/**/*.test.ts'],
          testTimeout: 180_000,
          hookTimeout: 240_000,
          fileParallelism: false,
          isolate: false,
        },
      },
    ],
  },
})
