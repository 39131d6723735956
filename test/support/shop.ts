import type { TestApi } from './api.ts'

/** The repository of the app that tests of deployments deploy. */
export const SHOP_URL = 'https://git.example.com/team/shop.git'

/**
 * Puts another version of the shop on its branch; the text is its commit message too, so that a test can tell
 * what serves.
 */
export const commitShop = (api: TestApi, text: string) =>
  api.fakes.git.commit(
    SHOP_URL,
    'main',
    {
      'package.json': '{"name":"shop","scripts":{"start":"node server.js"}}',
      'server.js': `// ${text}`,
    },
    text,
  )
