import { defineConfig } from 'vitest/config'

/** `unit` needs nothing; `engine` needs a container engine and the images of `npm run images`; `e2e` also the built server. */
export default defineConfig({
  test: {
    pool: 'forks',
    projects: [
      { extends: true, test: { name: 'unit', include: ['test/**/*.test.ts'], exclude: ['test/engine/**', 'test/e2e/**'], testTimeout: 20_000 } },
      { extends: true, test: { name: 'engine', include: ['test/engine/**/*.test.ts'], testTimeout: 120_000, hookTimeout: 120_000, fileParallelism: false } },
      { extends: true, test: { name: 'e2e', include: ['test/e2e/**/*.test.ts'], testTimeout: 180_000, hookTimeout: 240_000, fileParallelism: false } },
    ],
  },
})
