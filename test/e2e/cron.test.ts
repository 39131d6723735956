import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type GitServer, startGitServer } from '#test/support/git-server'
import { docker, eventually, nodeApp, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { deployed } from './support/deployed.ts'

const SECRET = 'a harbour of 7391 lamps'
const SCRIPT = `
console.log('job of ' + process.env.PORTREEVE_APP + ' with ' + process.env.JOB_TOKEN)
if (process.argv[2] === 'fail') process.exit(3)
if (process.argv[2] === 'wait') setTimeout(() => {}, 600000)
if (process.argv[2] === 'fill') { const all = []; for (;;) all.push(Buffer.alloc(8 << 20, 1)) }
`
let forge: GitServer
let portreeve: Portreeve
let receiver: Server
let app_id: string
const heard: { authorization?: string; body: string }[] = []
const call = async (method: string, path: string, body?: unknown) => {
  const answer = await portreeve.call(method, path, body)
  expect([200, 201], JSON.stringify(answer.body)).toContain(answer.status)
  return answer.body.data
}
const add = (body: object) => call('POST', '/api/cron-jobs', { app_id, expression: '0 0 1 1 *', ...body })
const runs = (id: string) => call('GET', `/api/cron-jobs/${id}/runs`)
const ended = (id: string, statuses = ['queued', 'running']) =>
  eventually(
    'The end of a run',
    async () => {
      const [run] = await runs(id)
      return run && !statuses.includes(run.status) ? run : undefined
    },
    90_000,
  )
const run = async (body: object) => {
  const { id } = await add(body)
  await call('POST', `/api/cron-jobs/${id}/run`)
  return ended(id)
}
/** Runs that have a container; the label of other containers is empty. */
const containers = () => docker('ps', '--format', '{{.Label "portreeve.run"}}').trim()

beforeAll(async () => {
  forge = await startGitServer()
  receiver = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += chunk))
    request.on('end', () => {
      heard.push({ authorization: request.headers.authorization, body })
      response.statusCode = request.url === '/refuse' ? 503 : 200
      response.end(`heard ${request.headers.authorization}`)
    })
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const host = `127.0.0.1:${(receiver.address() as AddressInfo).port}`
  portreeve = await startPortreeve({ env: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: `${forge.host},${host}` } })
  const repository = forge.repository('jobs')
  const declared = { cron_jobs: [{ schedule: '0 4 * * *', command: 'node job.js declared' }] }
  repository.commit({ ...nodeApp('one'), 'job.js': SCRIPT, 'portreeve.json': JSON.stringify(declared) })
  app_id = (await deployed(portreeve, { name: 'jobs', git_url: repository.url })).id
  await call('POST', `/api/apps/${app_id}/env`, { key: 'JOB_TOKEN', value: SECRET })
  const { id } = await call('POST', `/api/apps/${app_id}/deploy`, {})
  await portreeve.untilDeployment(id)
})
afterAll(async () => {
  await portreeve?.dispose()
  await forge?.close()
  receiver?.close()
})

describe('cron jobs on the real engine', () => {
  it('run when they are due, by the clock, and by hand, in the image and environment of what is live', async () => {
    const soon = new Date(Date.now() + 4000)
    const expression = `${soon.getUTCSeconds()} ${soon.getUTCMinutes()} ${soon.getUTCHours()} * * *`
    const { id, next_run_at } = await add({ expression, command: 'node job.js' })
    const due = await ended(id)
    expect(due).toMatchObject({ status: 'succeeded', trigger: 'schedule', slot: next_run_at, exit_code: 0 })
    expect(due.output).toContain('job of jobs with [redacted]')
    expect(Date.parse(due.started_at) - Date.parse(next_run_at)).toBeLessThan(5000)
    expect(await runs(id)).toHaveLength(1)
    expect(await run({ command: ['node', 'job.js'] })).toMatchObject({
      status: 'succeeded',
      trigger: 'manual',
    })
    expect(containers()).toBe('')
  })
  it('of portreeve.json are there as soon as it is live, and those of app.json take their place', async () => {
    const declared = async () =>
      (await call('GET', `/api/cron-jobs?app_id=${app_id}`)).filter(
        ({ source }: { source: string }) => source === 'repository',
      )
    expect(await declared()).toMatchObject([
      {
        expression: '0 4 * * *',
        command: 'node job.js declared',
        next_run_at: expect.stringContaining('T04:00'),
      },
    ])
    const cron = [{ schedule: '30 5 * * *', command: 'node job.js sweep' }]
    forge.repository('jobs').commit({ 'portreeve.json': null, 'app.json': JSON.stringify({ cron }) })
    const { id } = await call('POST', `/api/apps/${app_id}/deploy`, {})
    expect((await portreeve.untilDeployment(id)).status).toBe('live')
    expect(await declared()).toMatchObject([{ expression: '30 5 * * *', command: 'node job.js sweep' }])
  })
  it('tell failures, limits of time and of memory, and leave no container', async () => {
    expect(await run({ command: 'node job.js fail', retries: 1, retry_delay_s: 0 })).toMatchObject({
      status: 'failed',
      exit_code: 3,
      attempts: 2,
    })
    expect(await run({ command: 'node job.js wait', timeout_s: 2 })).toMatchObject({ status: 'timed_out' })
    await call('PUT', `/api/apps/${app_id}`, { limits: { memory_bytes: 128 * 1024 * 1024 } })
    const { id } = await call('POST', `/api/apps/${app_id}/deploy`, {})
    await portreeve.untilDeployment(id)
    expect(await run({ command: 'node job.js fill' })).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('memory'),
    })
    expect(containers()).toBe('')
  })
  it('call addresses that are allowed, and keep the beginning of the answer without the header', async () => {
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
    const http = { headers: { Authorization: 'Bearer of 8264 lamps' }, body: '{"a":1}' }
    expect(await run({ http: { url: `${url}/do`, ...http } })).toMatchObject({
      status: 'succeeded',
      http_status: 200,
      output: 'heard [redacted]',
    })
    expect(heard.at(-1)).toEqual({ authorization: 'Bearer of 8264 lamps', body: '{"a":1}' })
    expect(await run({ http: { url: `${url}/refuse` } })).toMatchObject({
      status: 'failed',
      http_status: 503,
    })
    expect(
      (
        await portreeve.call('POST', '/api/cron-jobs', {
          app_id,
          expression: '@daily',
          http: { url: 'http://127.0.0.1:1/' },
        })
      ).status,
    ).toBe(422)
  })
  it('that kill -9 of Portreeve interrupted end as failed, once, and what they ran is gone', async () => {
    const { id } = await add({ command: 'node job.js wait' })
    await call('POST', `/api/cron-jobs/${id}/run`)
    await eventually('The container of the run', () => (containers() ? true : undefined), 30_000)
    await portreeve.kill()
    await portreeve.start()
    expect(await ended(id)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('was restarted'),
      attempts: 1,
    })
    await eventually('The end of its container', () => (containers() ? undefined : true), 30_000)
  })
})
