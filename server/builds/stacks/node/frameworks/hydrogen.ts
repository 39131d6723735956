import { configText, uses } from '../manifest.ts'
import type { NodeFramework } from './framework.ts'

/**
 * Hydrogen: a worker for the maker's own host. A server of the project's own is started as it is; without one
 * the command line tool runs the built worker, which it can do on any machine.
 */
export const hydrogen: NodeFramework = {
  name: 'hydrogen',
  detect: (app) => uses(app, '@shopify/hydrogen'),
  plan(app) {
    const react_router =
      uses(app, '@react-router/dev') || /hydrogen/.test(configText(app.tree, 'vite.config'))
    return {
      kind: 'server',
      build: react_router || uses(app, '@shopify/cli') ? 'shopify hydrogen build' : 'remix build',
      start: 'shopify hydrogen preview --port $PORT',
      port: 3000,
    }
  },
}
