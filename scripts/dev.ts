/**
 * What one works with: `npm run dev` is the dashboard over the whole API on fakes, with the data of a small team; it
 * needs no container engine. `npm run dev:server` puts the real server in place of the fakes, which reloads by itself.
 * The pages reload too; they are at the address that Vite prints.
 */
import { spawn } from 'node:child_process'
import { dirname, join } from 'node:path'

const root = dirname(import.meta.dirname)
const port = process.env.PORT ?? '9000'
const env = { PORTREEVE_DEV_SERVER: `http://127.0.0.1:${port}`, ...process.env, PORT: port }
const start = (name: string, ...args: string[]) =>
  spawn(join(root, 'node_modules/.bin', name), args, { cwd: root, stdio: 'inherit', env })

const running = [
  process.argv.includes('--server')
    ? start('nitro', 'dev', '--port', port)
    : start('node', 'scripts/demo/server.ts'),
  start('vite', '--config', 'dashboard/vite.config.ts'),
]
const stop = () => running.forEach((child) => child.kill('SIGTERM'))
process.on('SIGINT', stop).on('SIGTERM', stop)
for (const child of running) child.on('exit', stop)
