/**
 * How long commands take that do next to nothing, against a server beside them: of the one-file program, of the
 * client for those who have Node, and of a checkout; how long an empty Node takes beside them.
 * `npx node bench/commands.ts [--rounds=15]`. Needs `npm run binary`; needs no engine.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createReport, median, ms, numberOptions } from './support/report.ts'
import { spawnServer } from './support/server.ts'

const LIMIT_MS = 150
const options = numberOptions({ rounds: 15 })
const report = createReport('Commands that do next to nothing')
const program = resolve(process.env.PORTREEVE_PROGRAM ?? 'dist/portreeve')
if (!existsSync(program)) throw new Error('Build the binary first: npm run binary')

const CLIENT = [process.execPath, resolve('.output/portreeve-client.mjs')]
const CHECKOUT = [process.execPath, resolve('.output/server/portreeve.mjs')]
const home = mkdtempSync(join(tmpdir(), 'ptr-commands-'))
const server = await spawnServer(join(home, 'data'), { DOCKER_HOST: 'unix:///nonexistent/docker.sock' })
try {
  await server.firstAnswer('/api/auth/me', 401)
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    PORTREEVE_CACHE_DIR: join(home, 'cache'),
    PORTREEVE_DATA_DIR: join(home, 'data'),
    PORTREEVE_URL: server.url,
    PORTREEVE_TOKEN: await server.login(),
    HOST: '127.0.0.1',
    PORT: String(server.port),
  }
  const commands: readonly (readonly [name: string, argv: readonly string[], is_ours: boolean])[] = [
    ['an empty Node', [process.execPath, '-e', '0'], false],
    ['--help of the binary', [program, '--help'], true],
    ['--help of the client for Node', [...CLIENT, '--help'], true],
    ['--help of a checkout', [...CHECKOUT, '--help'], true],
    ['status of the binary', [program, 'status'], true],
    ['status of the client for Node', [...CLIENT, 'status'], true],
    ['status of a checkout', [...CHECKOUT, 'status'], true],
    ['host status of the binary', [program, 'host', 'status'], true],
    ['host status of a checkout', [...CHECKOUT, 'host', 'status'], true],
  ]
  const took = commands.map((): number[] => [])
  // They take turns, so that what else the machine does meets them all; the first round unpacks.
  for (let round = 0; round <= options.rounds; round += 1)
    for (const [index, [name, [command = '', ...args]]] of commands.entries()) {
      const began = performance.now()
      const { status, stderr } = spawnSync(command, args, { env, encoding: 'utf8' })
      // 3: it is not ready, since there is no engine.
      if (status !== 0 && status !== 3) throw new Error(`${name} ended with ${status}: ${stderr}`)
      if (round > 0) took[index]!.push(performance.now() - began)
    }
  for (const [index, [name, , is_ours]] of commands.entries()) {
    const found = median(took[index]!)
    const text = `${ms(found)} (fastest ${ms(Math.min(...took[index]!))})`
    if (is_ours) report.check(`${name} below ${LIMIT_MS} ms`, found < LIMIT_MS, text)
    else report.figure(name, text)
  }
} finally {
  await server.stop()
  rmSync(home, { recursive: true, force: true })
}
report.end()
