/**
 * The server and the dashboard while one works on them: both reload by themselves. `npm run dev`; the pages are at
 * the address that Vite prints, and reach the API of the server beside it. `npm run dev:demo` puts the demo on
 * fakes in the place of the server: it needs no container engine, and has the data of a small team.
 */
import { spawn } from 'node:child_process'
import { dirname, join } from 'node:path'

const root = dirname(import.meta.dirname)
const port = process.env.PORT ?? '9000'
const env = { PORTREEVE_DEV_SERVER: `http://127.0.0.1:${port}`, ...process.env, PORT: port }
const start = (name: string, ...args: string[]) =>
  spawn(join(root, 'node_modules/.bin', name), args, { cwd: root, stdio: 'inherit', env })

const running = [
  process.argv.includes('--demo')
    ? start('node', 'scripts/demo/server.ts')
    : start('nitro', 'dev', '--port', port),
  start('vite', '--config', 'dashboard/vite.config.ts'),
]
const stop = () => running.forEach((child) => child.kill('SIGTERM'))
process.on('SIGINT', stop).on('SIGTERM', stop)
for (const child of running) child.on('exit', stop)
