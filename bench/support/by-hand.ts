import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { docker, freePorts } from '#test/support/portreeve'

/**
 * The steps of a deployment as an experienced operator scripts them: git, the engine's CLI, and a switch at a
 * HAProxy of their own.
 */
export interface ByHand {
  /** Port of the hand-made edge. */
  edge_port: number
  /**
   * Clones, builds, starts, waits until it is ready and switches; resolves with the milliseconds of each step
   * when the switch is made.
   */
  deploy(
    url: string,
    dockerfile: string,
    dockerignore: string,
    port: number,
  ): Promise<Record<'clone' | 'build' | 'start' | 'verify' | 'switch', number>>
  /** Removes the container that served before the last switch. */
  retire(): void
  close(): void
}

const IMAGE = 'haproxy:3.0-trixie'
const POLL_MS = 15

/** Asynchronous: the Git server that is cloned from may live in this process. */
const command = promisify(execFile)
const engine = async (...args: string[]): Promise<string> =>
  (await command('/usr/bin/docker', args, { env: { ...process.env, DOCKER_BUILDKIT: '1' } })).stdout.trim()

const pause = (duration_ms: number) => new Promise((resolve) => setTimeout(resolve, duration_ms))

/** One command on HAProxy's runtime socket. */
const runtime = (port: number, line: string) =>
  new Promise<string>((resolve, reject) => {
    let answer = ''
    connect(port, '127.0.0.1', function opened(this: import('node:net').Socket) {
      this.write(`${line}\n`)
    })
      .on('data', (chunk: Buffer) => {
        answer += chunk.toString()
      })
      .on('end', () => resolve(answer.trim()))
      .on('error', reject)
  })
const accepts = (host: string, port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, host, () => {
      socket.destroy()
      resolve(true)
    }).on('error', () => resolve(false))
  })
async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 60_000
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`${what} did not happen.`)
    await pause(POLL_MS)
  }
}

export async function createByHand(name: string): Promise<ByHand> {
  const folder = mkdtempSync(join(tmpdir(), 'by-hand-'))
  const [edge_port = 0, admin_port = 0] = await freePorts(2)
  const label = `bench=${name}`
  writeFileSync(
    join(folder, 'haproxy.cfg'),
    `global
  stats socket ipv4@127.0.0.1:${admin_port} level admin
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend web
  bind 127.0.0.1:${edge_port}
  default_backend app
backend app
  server one 127.0.0.1:1 disabled
`,
  )
  docker(
    'run',
    '-d',
    '--name',
    `${name}-edge`,
    '--label',
    label,
    '--network',
    'host',
    '-v',
    `${folder}/haproxy.cfg:/cfg:ro`,
    '--entrypoint',
    'haproxy',
    IMAGE,
    '-W',
    '-db',
    '-f',
    '/cfg',
  )
  docker('network', 'create', '--label', label, '--subnet', '10.231.77.0/24', name)
  await until('The edge', () => accepts('127.0.0.1', admin_port))
  let count = 0
  let old: string | undefined
  let retired: string | undefined
  return {
    edge_port,
    async deploy(url, dockerfile, dockerignore, port) {
      count += 1
      const source = join(folder, `source-${count}`)
      const tag = `${name}:${count}`
      const laps = [performance.now()]
      const lap = () => laps.push(performance.now())
      await command('git', ['clone', '-q', '--depth', '1', '-b', 'main', url, source])
      lap()
      writeFileSync(join(source, '.dockerignore'), dockerignore)
      writeFileSync(join(folder, 'Dockerfile'), dockerfile)
      await engine('build', '-q', '-f', join(folder, 'Dockerfile'), '-t', tag, '--label', label, source)
      lap()
      const id = await engine(
        'run',
        '-d',
        '--name',
        `${name}-${count}`,
        '--label',
        label,
        '--init',
        '--network',
        name,
        '-e',
        `PORT=${port}`,
        tag,
      )
      const address = await engine(
        'inspect',
        '-f',
        `{{(index .NetworkSettings.Networks "${name}").IPAddress}}`,
        id,
      )
      lap()
      await until('The app', () => accepts(address, port))
      lap()
      await runtime(admin_port, `set server app/one addr ${address} port ${port}`)
      await runtime(admin_port, 'set server app/one state ready')
      lap()
      retired = old
      old = id
      const [clone = 0, build = 0, start = 0, verify = 0, switched = 0] = laps
        .slice(1)
        .map((at, index) => at - laps[index]!)
      return { clone, build, start, verify, switch: switched }
    },
    retire() {
      if (retired) docker('rm', '-f', retired)
      retired = undefined
    },
    close() {
      const containers = docker('ps', '-aq', '--filter', `label=${label}`).split('\n').filter(Boolean)
      if (containers.length > 0) docker('rm', '-f', ...containers)
      const images = docker('images', '-q', '--filter', `label=${label}`).split('\n').filter(Boolean)
      if (images.length > 0) docker('rmi', '-f', ...new Set(images))
      docker('network', 'rm', name)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
