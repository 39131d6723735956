import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BUSYBOX_IMAGE, ensureBusyboxImage } from '#test/support/engine-images'
import { docker, eventually, type Portreeve, startPortreeve } from '#test/support/portreeve'

/** Where clouds tell machines about themselves; here it is on this machine. */
const METADATA = '169.254.169.254'
/** Another machine of a local network: a namespace at the other end of a cable. */
const NEIGHBOUR = '10.98.7.2'
/** One whose address is in the range that project networks are taken from. */
const SAME_RANGE = '10.207.255.2'
const NAMESPACE = `nb-${process.pid}`
const ip = (...args: string[]) => execFileSync('ip', args, { stdio: ['ignore', 'pipe', 'pipe'] })
const rules = () => execFileSync('iptables', ['-S'], { encoding: 'utf8' })

let portreeve: Portreeve
let service: Server
let neighbour: ChildProcess
let listed: Server
const portOf = (server: Server) => (server.address() as AddressInfo).port
const listen = () =>
  new Promise<Server>((resolve) => {
    const server = createServer((_, response) => response.end('canary-inside'))
    server.listen(0, '0.0.0.0', () => resolve(server))
  })

beforeAll(async () => {
  await ensureBusyboxImage()
  ip('addr', 'add', `${METADATA}/32`, 'dev', 'lo')
  ip('netns', 'add', NAMESPACE)
  ip('link', 'add', 'nb0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', NAMESPACE)
  ip('addr', 'add', '10.98.7.1/24', 'dev', 'nb0')
  ip('addr', 'add', '10.207.255.1/30', 'dev', 'nb0')
  ip('link', 'set', 'nb0', 'up')
  ip('-n', NAMESPACE, 'addr', 'add', `${NEIGHBOUR}/24`, 'dev', 'eth0')
  ip('-n', NAMESPACE, 'addr', 'add', `${SAME_RANGE}/30`, 'dev', 'eth0')
  ip('-n', NAMESPACE, 'link', 'set', 'eth0', 'up')
  ip('-n', NAMESPACE, 'route', 'add', 'default', 'via', '10.98.7.1')
  neighbour = spawn('nsenter', [
    `--net=/run/netns/${NAMESPACE}`,
    process.execPath,
    '-e',
    'require("node:http").createServer((_, r) => r.end("canary-inside")).listen(80)',
  ])
  await eventually('The neighbour answering', () =>
    fetch(`http://${NEIGHBOUR}/`).then((answer) => (answer.ok ? true : undefined)),
  )
  ;[service, listed] = await Promise.all([listen(), listen()])
  portreeve = await startPortreeve({
    env: { HOST: '0.0.0.0', PORTREEVE_ALLOWED_PRIVATE_HOSTS: `${ownAddress()}:${portOf(listed)}` },
  })
  await eventually('The rules', () => (rules().includes('PTR-OUT-BUILDS') ? true : undefined), 30_000)
})
afterAll(async () => {
  await portreeve?.dispose()
  for (const server of [service, listed]) server?.close()
  neighbour?.kill()
  ip('addr', 'del', `${METADATA}/32`, 'dev', 'lo')
  ip('netns', 'del', NAMESPACE)
})

/** An address of this machine in its own network. */
function ownAddress(): string {
  const all = Object.entries(networkInterfaces()).filter(([name]) => /^e/.test(name))
  return all.flatMap(([, found]) => found ?? []).find(({ family }) => family === 'IPv4')!.address
}
/** A line of shell that says of each address whether something answers there. */
const probe = (targets: string[]) =>
  `for at in ${targets.join(' ')}; do if timeout 5 wget -q -O /dev/null http://$at/ 2>/tmp/e || grep -q 'server returned' /tmp/e; then echo "open $at"; else echo "shut $at"; fi; done`
const api = () => Number(new URL(portreeve.url).port)

async function deployed(name: string, dockerfile: string, more: object = {}) {
  const { status, body } = await portreeve.call('POST', '/api/apps', {
    name,
    soak_seconds: 0,
    dockerfile,
    ...more,
  })
  expect(status, JSON.stringify(body)).toBe(201)
  const list = await portreeve.call('GET', `/api/apps/${body.data.id}/deployments`)
  const deployment = await portreeve.untilDeployment(list.body.data[0].id)
  const log = await portreeve.call('GET', `/api/deployments/${deployment.id}/logs?tail=5000`)
  return { id: body.data.id as string, status: deployment.status as string, log: JSON.stringify(log.body) }
}

describe('what runs for users reaches nothing of this machine or its network', () => {
  const shut = () => [
    `172.17.0.1:${api()}`,
    `${ownAddress()}:${api()}`,
    `${ownAddress()}:${portOf(service)}`,
    `${METADATA}:${portOf(service)}`,
    `${NEIGHBOUR}:80`,
    `${SAME_RANGE}:80`,
  ]
  const open = () => [`${ownAddress()}:${portOf(listed)}`, `${ownAddress()}:${portreeve.edge_port}`]
  it('from a step of a build, except the edge and what the operator listed', async () => {
    const { log } = await deployed(
      'steps',
      `FROM ${BUSYBOX_IMAGE}\nRUN ${probe([...shut(), ...open()])}\nRUN exit 1`,
    )
    for (const target of shut()) expect(log).toContain(`shut ${target}`)
    for (const target of open()) expect(log).toContain(`open ${target}`)
  })
  it('from an app, its release command, commands and cron jobs, through its own gateway neither; other containers of its project answer', async () => {
    const gateway = '$(ip route | sed -n "s/default via \\([0-9.]*\\).*/\\1/p")'
    const serve = 'echo served > /www/index.html; httpd -f -h /www -p $PORT'
    const script = `(sleep 1; ${probe([`${gateway}:${api()}`, ...shut(), ...open()])}) & ${serve}`
    const { id, status, log } = await deployed(
      'app',
      `FROM ${BUSYBOX_IMAGE}\nCMD ${JSON.stringify(['sh', '-c', script])}`,
      { build: { release_command: probe([...shut(), ...open()]) } },
    )
    expect(status, log).toBe('live')
    for (const target of shut()) expect(log, 'release').toContain(`shut ${target}`)
    for (const target of open()) expect(log, 'release').toContain(`open ${target}`)
    const command = probe([...shut(), ...open()])
    const exec = await portreeve.call('POST', `/api/apps/${id}/exec`, { command })
    const job = await portreeve.call('POST', '/api/cron-jobs', {
      app_id: id,
      expression: '0 0 1 1 *',
      command,
    })
    await portreeve.call('POST', `/api/cron-jobs/${job.body.data.id}/run`)
    const run = await eventually('The end of the run', async () => {
      const runs = await portreeve.call('GET', `/api/cron-jobs/${job.body.data.id}/runs`)
      return runs.body.data.find((one: { finished_at: string | null }) => one.finished_at)
    })
    for (const output of [exec.body.data.output, run.output] as string[]) {
      for (const target of shut()) expect(output).toContain(`shut ${target}`)
      for (const target of open()) expect(output).toContain(`open ${target}`)
    }
    const text = await eventually('Its probes', async () => {
      const { body } = await portreeve.call('GET', `/api/apps/${id}/logs?tail=200`)
      const lines = JSON.stringify(body)
      return lines.includes(`${ownAddress()}:${portreeve.edge_port}`) ? lines : undefined
    })
    for (const target of shut()) expect(text).toContain(`shut ${target}`)
    for (const target of open()) expect(text).toContain(`open ${target}`)
    expect(text).toMatch(new RegExp(`shut 10\\.20\\d\\.\\d+\\.1:${api()}`))
  })
  it('nor what another project runs, which its own project reaches, and whatever shares the network of a project', async () => {
    const { data: project } = (await portreeve.call('POST', '/api/projects', { name: 'Other' })).body
    const serve = ['sh', '-c', 'echo served > /www/index.html; httpd -f -h /www -p 80']
    const { id } = await deployed('other', `FROM ${BUSYBOX_IMAGE}\nEXPOSE 80\nCMD ${JSON.stringify(serve)}`, {
      project_id: project.id,
    })
    const container = docker('ps', '-q', '--filter', `label=portreeve.app=${id}`)
    const format = '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}'
    const served = `${docker('inspect', '-f', format, container)}:80`
    const apps = (await portreeve.call('GET', '/api/apps?q=app')).body.data as { id: string; name: string }[]
    const ask = async (app_id: string, targets: string[]) => {
      const answer = await portreeve.call('POST', `/api/apps/${app_id}/exec`, { command: probe(targets) })
      return answer.body.data.output as string
    }
    expect(await ask(apps.find(({ name }) => name === 'app')!.id, [served])).toContain(`shut ${served}`)
    expect(await ask(id, [served])).toContain(`open ${served}`)
    // As a database, or whatever else, in the network of that project; the edge answers there as
    // well.
    const edge = `${ownAddress()}:${portreeve.edge_port}`
    const line = probe([...shut(), edge])
    const found = docker(
      'run',
      '--rm',
      '--network',
      `container:${container}`,
      BUSYBOX_IMAGE,
      'sh',
      '-c',
      line,
    )
    for (const target of shut()) expect(found).toContain(`shut ${target}`)
    expect(found).toContain(`open ${edge}`)
  })
  it('which is said, mended when somebody takes a rule away, and stays while Portreeve is stopped', async () => {
    expect((await portreeve.call('GET', '/readyz')).body.checks.isolation).toEqual({ ok: true })
    execFileSync('iptables', ['-F', 'PTR-OUT-PROJECTS'])
    await eventually('The rules being back', () =>
      rules().includes('-A PTR-OUT-PROJECTS -d 169.254.0.0/16') ? true : undefined,
    )
    await portreeve.stop()
    expect(rules()).toContain('-A PTR-OUT-PROJECTS -d 169.254.0.0/16')
    execFileSync('bash', ['-c', '. scripts/shell/engine.sh && host_rules_remove'])
    expect(rules()).not.toContain('PTR-')
    // Without the rules all of it can be reached: what is shut above is shut by them.
    const targets = shut().filter((target) => !target.endsWith(`:${api()}`))
    const found = await new Promise<string>((resolve, reject) =>
      execFile(
        '/usr/bin/docker',
        ['run', '--rm', BUSYBOX_IMAGE, 'sh', '-c', probe(targets)],
        (error, text) => (error ? reject(error) : resolve(text)),
      ),
    )
    for (const target of targets) expect(found).toContain(`open ${target}`)
    await portreeve.start()
  })
})
