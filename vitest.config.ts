import { resolve } from 'node:path'
import { defineConfig } from 'vitest/config'

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
      '#dashboard': resolve('test/support/virtual-dashboard.ts'),
      '@': resolve('dashboard/src'),
    },
  },
  test: {
    pool: 'forks',
    // Shared machines of CI stall for seconds; a test that only fails then is no fault. On a developer's
    // machine every failure shows.
    retry: process.env.CI ? 2 : 0,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/engine/**', 'test/e2e/**'],
          testTimeout: 20_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'engine',
          include: ['test/engine/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
      {
        extends: true,
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          testTimeout: 180_000,
          hookTimeout: 240_000,
          fileParallelism: false,
        },
      },
    ],
  },
})
