/**
 * A Portreeve on fakes, with the data of a small team: nothing is built, nobody outside is asked, and all is
 * forgotten when it ends. `npm run dev` starts it with the dashboard in front.
 */
import { createServer, request as httpRequest } from 'node:http'
import { registerHooks } from 'node:module'
import wsAdapter from 'crossws/adapters/node'

// Modules of the build: outside of one, files of the tests stand in for them.
const VIRTUAL: Record<string, string> = {
  '#api-document': '#test/support/virtual-api-document',
  '#endpoints': '#test/support/virtual-endpoints',
  '#migrations': '#test/support/virtual-migrations',
  '#templates': '#test/support/virtual-templates',
  '#dashboard': '#test/support/virtual-dashboard',
}
registerHooks({ resolve: (specifier, context, next) => next(VIRTUAL[specifier] ?? specifier, context) })

const { createSocketOptions } = await import('#server/http/socket-options')
const { createWebSocketHooks } = await import('#server/http/websocket')
const { createTestApi } = await import('#test/support/api')
const { PEOPLE, seed } = await import('./seed.ts')

const TICK_MS = 50
/** What happened before somebody looks, at this many times the speed of the clock. */
const HISTORY_MS = 3 * 3_600_000
const HURRY = 40
const PASSWORD = 'correct horse battery staple'
const port = Number(process.env.PORT ?? 9000)

const api = await createTestApi({ jobs: false, environment: { PORTREEVE_ADMIN_PASSWORD: PASSWORD } })
const { services, kernel, fakes } = api
// The callers of tests go; the clock of tests, which stands still, is moved along with the real one.
kernel.db.sql('DELETE FROM users').run()
fakes.clock.advance(Date.now() - HISTORY_MS - fakes.clock.now())
let seeding = true
const behind_ms = () => Date.now() - fakes.clock.now()
setInterval(() => fakes.clock.advance(seeding ? TICK_MS * HURRY : behind_ms()), TICK_MS)
await services.start()
await seed(api, PASSWORD)
seeding = false

const hooks = createWebSocketHooks(() => ({
  realtime: services.realtime,
  http: services.http,
  authenticate: (credentials, facts) => services.identity.authenticateUpgrade(credentials, facts),
}))
const { handleUpgrade } = wsAdapter({ ...(createSocketOptions() as object), resolve: () => hooks })
const behind = new URL(api.url)
createServer((request, response) => {
  const { method, url: path, headers } = request
  const ahead = httpRequest({ host: behind.hostname, port: behind.port, method, path, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(response)
  })
  ahead.on('error', () => response.destroy())
  request.pipe(ahead)
})
  .on('upgrade', (request, socket, head) => void handleUpgrade(request, socket, head))
  .listen(port, '127.0.0.1', () => {
    process.stdout.write(
      `The demo is at http://127.0.0.1:${port}. Log in with the password "${PASSWORD}" as:\n`,
    )
    for (const [role, email] of Object.entries(PEOPLE)) process.stdout.write(`  ${email} (${role})\n`)
  })
