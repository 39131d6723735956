import type { NodeApp } from '../manifest.ts'

const SERVER_START =
  /(?:^|[;&|]\s*|\bcross-env(?:-shell)?\s+(?:\w+=\S+\s+){0,9}|^(?:\w+=\S+\s+){1,9})(?:node|tsx|ts-node|ts-node-dev|nodemon|bun|babel-node|pm2|pm2-runtime|forever|fastify)\s/
const DEVELOPMENT_SERVER =
  /scripts\/start|webpack-dev-server|dev-server|vite|react-scripts|vue-cli-service|\bng\b|http-server|live-server|\bserve\b/

/**
 * Whether the start script runs a program of the package's own, rather than the development server of a
 * bundler.
 */
export function startsServer(app: NodeApp, site: string): boolean {
  const start = (
    app.manifest.scripts.get('start') ??
    app.manifest.scripts.get('start:prod') ??
    app.manifest.scripts.get('preview') ??
    ''
  ).trim()
  if (site === 'storybook') return start !== ''
  return SERVER_START.test(start) && !DEVELOPMENT_SERVER.test(start)
}
