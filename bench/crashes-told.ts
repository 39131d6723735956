/**
 * How soon a crash loop and a kill for memory are told and shown, through the real engine: from the moment the
 * engine reports until the channel has the event and the alert, and the API shows them.
 * `npx node bench/crashes-told.ts [--rounds=5]`
 */
import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { createInterface } from 'node:readline'
import { BUSYBOX_IMAGE, ensureBusyboxImage } from '#test/support/engine-images'
import { docker, eventually, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { createReport, median, ms, numberOptions } from './support/report.ts'

const LIMIT_MS = 5000
/** An app is in a crash loop with its third end within a minute. */
const LOOP = 3
const MEMORY_BYTES = 32 * 1024 * 1024
/** A file says what the next start does: end at once, or take all memory there is. */
const DOCKERFILE = `FROM ${BUSYBOX_IMAGE}
CMD ["sh", "-c", "if test -e /doomed; then exit 9; fi; if test -e /hungry; then rm /hungry; exec tail /dev/zero; fi; exec httpd -f -p 8080 -h /etc"]`
const options = numberOptions({ rounds: 5 })
const report = createReport(`${options.rounds} crash loops and ${options.rounds} kills for memory`)

interface Notice {
  type: string
  at_ms: number
  app: string
  text: string
}
const notices: Notice[] = []
const receiver = createServer((request, response) => {
  void json(request).then((body) => {
    const { type, data } = body as { type: string; data: { app_id?: string } }
    notices.push({ type, at_ms: Date.now(), app: data.app_id ?? '', text: JSON.stringify(body) })
    response.end()
  })
})
await new Promise<void>((done) => receiver.listen(0, '127.0.0.1', done))
await ensureBusyboxImage()
const portreeve = await startPortreeve({ env: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: '127.0.0.1' } })
try {
  const hook = await portreeve.call('POST', '/api/webhooks', {
    kind: 'notification',
    provider: 'generic',
    config: { url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/` },
    events: ['app.crashed', 'app.oom_killed', 'alert.firing'],
  })
  if (hook.status !== 201) throw new Error(JSON.stringify(hook.body))
  await measure('a crash loop', {
    file: 'doomed',
    event: 'app.crashed',
    alert: 'App crashed',
    reported: (lines) => lines.filter(({ action }) => action === 'die')[LOOP - 1],
    shown: async (id) => (await appOf(portreeve, id)).status === 'crashed',
  })
  await measure('a kill for memory', {
    file: 'hungry',
    event: 'app.oom_killed',
    alert: 'App ran out of memory',
    reported: (lines) => lines.find(({ action }) => action === 'oom'),
    shown: async () => true,
  })
} finally {
  await portreeve.dispose()
  receiver.close()
}
report.end()

interface Trouble {
  file: string
  event: string
  alert: string
  /** The line of the engine from which the time counts. */
  reported(lines: readonly EngineLine[]): EngineLine | undefined
  shown(app_id: string): Promise<boolean>
}

async function measure(what: string, trouble: Trouble): Promise<void> {
  const times: Record<'event' | 'alert' | 'api', number[]> = { event: [], alert: [], api: [] }
  for (let round = 1; round <= options.rounds; round += 1) {
    const id = await createApp(`${trouble.file}-${round}`)
    const engine = watchEngine(id)
    const container = docker('ps', '-q', '--filter', `label=portreeve.app=${id}`)
    docker('exec', container, 'sh', '-c', `touch /${trouble.file}; killall httpd`)
    const line = await eventually(`The engine reporting ${what}`, () => trouble.reported(engine.lines))
    const told = (type: string, text: string) =>
      eventually(`${type} of ${what}`, () =>
        notices.find((one) => one.type === type && one.text.includes(id) && one.text.includes(text)),
      )
    const shown = eventually(`The API showing ${what}`, async () => {
      const { data } = (await portreeve.call('GET', '/api/monitoring/alerts/history')).body
      const is_listed = data.some(
        (one: { subject_id: string; rule_name: string }) =>
          one.subject_id === id && one.rule_name === trouble.alert,
      )
      return is_listed && (await trouble.shown(id)) ? Date.now() : undefined
    })
    times.event.push((await told(trouble.event, id)).at_ms - line.at_ms)
    times.alert.push((await told('alert.firing', trouble.alert)).at_ms - line.at_ms)
    times.api.push((await shown) - line.at_ms)
    engine.stop()
    await portreeve.call('DELETE', `/api/apps/${id}`)
  }
  for (const [name, found] of Object.entries(times))
    report.check(
      `${what}: ${name} within ${LIMIT_MS / 1000} s (median, slowest)`,
      Math.max(...found) < LIMIT_MS,
      `${ms(median(found))}, ${ms(Math.max(...found))}`,
    )
}

async function createApp(name: string): Promise<string> {
  const { body } = await portreeve.call('POST', '/api/apps', {
    name,
    dockerfile: DOCKERFILE,
    soak_seconds: 0,
    port: 8080,
    limits: { memory_bytes: MEMORY_BYTES },
  })
  const ended = await portreeve.untilDeployment(body.data.latest_deployment.id)
  if (ended.status !== 'live') throw new Error(JSON.stringify(ended.error))
  return body.data.id
}

async function appOf(server: Portreeve, id: string): Promise<{ status: string }> {
  return (await server.call('GET', `/api/apps/${id}`)).body.data
}

interface EngineLine {
  action: string
  at_ms: number
}

/** What the engine reports of the containers of an app, by its own clock. */
function watchEngine(app_id: string): { lines: EngineLine[]; stop(): void } {
  const child = spawn('docker', [
    'events',
    '--filter',
    `label=portreeve.app=${app_id}`,
    '--format',
    '{{.Action}} {{.TimeNano}}',
  ])
  const lines: EngineLine[] = []
  createInterface(child.stdout).on('line', (line) => {
    const [action = '', nano] = line.split(' ')
    lines.push({ action, at_ms: Number(nano) / 1e6 })
  })
  return { lines, stop: () => void child.kill() }
}
