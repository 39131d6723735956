/**
 * The server and the dashboard while one works on them: both reload by themselves. `npm run dev`; the pages are at
 * the address that Vite prints, and reach the API of the server beside it.
 */
import { spawn } from 'node:child_process'
import { dirname, join } from 'node:path'

const root = dirname(import.meta.dirname)
const start = (name: string, ...args: string[]) =>
  spawn(join(root, 'node_modules/.bin', name), args, { cwd: root, stdio: 'inherit' })

const running = [
  start('nitro', 'dev', '--port', process.env.PORT ?? '9000'),
  start('vite', '--config', 'dashboard/vite.config.ts'),
]
const stop = () => running.forEach((child) => child.kill('SIGTERM'))
process.on('SIGINT', stop).on('SIGTERM', stop)
for (const child of running) child.on('exit', stop)
