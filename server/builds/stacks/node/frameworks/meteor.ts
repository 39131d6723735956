import { own } from '#server/kernel/own'
import { firstLine } from '../../../tree-queries.ts'
import type { NodeFramework } from './framework.ts'

/** The release of Node that each generation brings; a bundle needs the one that it was made with. */
const NODE: Readonly<Record<string, string>> = { 1: '12', 2: '14', 3: '22' }

/**
 * Meteor: its own program, which its makers' script installs, makes a bundle that plain Node runs. The
 * database is another app, named by `MONGO_URL`; `ROOT_URL` is the address that pages are written for.
 */
export const meteor: NodeFramework = {
  name: 'meteor',
  detect: (app) => app.tree.has('.meteor/release'),
  plan(app) {
    const release =
      /METEOR@(\d+(?:\.\d+){1,3})/.exec(firstLine(app.tree, '.meteor/release') ?? '')?.[1] ?? '3.1'
    return {
      kind: 'server',
      build_line:
        'meteor build --server-only --directory /tmp/meteor && mv /tmp/meteor/bundle .bundle && cd .bundle/programs/server && npm install --omit=dev',
      start: 'node .bundle/main.js',
      own_start: true,
      port: 3000,
      bundle: '.bundle',
      build_packages: ['curl', 'ca-certificates', 'python3', 'make', 'g++'],
      build_setup: [`curl -fsSL "https://install.meteor.com/?release=${release}" | sh`],
      build_env: { METEOR_ALLOW_SUPERUSER: 'true' },
      env: { ROOT_URL: 'http://localhost' },
      node: own(NODE, release.split('.')[0]!),
    }
  },
}
