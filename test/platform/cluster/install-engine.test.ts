import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Run, RunResult } from '#server/kernel/process'
import { installEngineOn } from '#server/platform/cluster/install-engine'

const SETTINGS = '/etc/docker/daemon.json'
const folder = mkdtempSync(join(tmpdir(), 'ptr-install-'))
const socket = join(folder, 'docker.sock')
const engine = createServer((request, response) => {
  const answer = request.url?.endsWith('/version') ? { Version: '20.10.24' } : {}
  response.setHeader('content-type', 'application/json').end(JSON.stringify(answer))
})
beforeAll(() => new Promise<void>((resolve) => void engine.listen(socket, resolve)))
afterAll(async () => {
  await new Promise((resolve) => engine.close(resolve))
  rmSync(folder, { recursive: true })
})

/** A server without an engine, played by this test: what it holds, and what was done to it. */
const server = {
  files: new Map<string, string>(),
  did: [] as string[],
  refuses: new Set<string>(),
  is_up: false,
}
/** What its engine does not start with. */
let hindered = ''
beforeEach(() => {
  server.files = new Map()
  server.did = []
  server.refuses = new Set()
  server.is_up = false
  hindered = 'nothing'
})
function start(): boolean {
  server.is_up = server.files.has('/usr/sbin/dockerd') && server.files.get(SETTINGS) !== hindered
  return server.is_up
}
function does(argv: readonly string[], stdin: string): boolean {
  const [name = '', ...rest] = argv
  const last = rest.at(-1)!
  if (name === 'test') return server.files.has(last)
  server.did.push(argv.filter((word) => !word.startsWith('--') || word === '--user').join(' '))
  if (server.refuses.has(name)) return false
  if (name === 'tee') server.files.set(last, stdin)
  if (name === 'rm') server.files.delete(last)
  if (name === 'systemctl') return start()
  if (name === 'apt-get' && rest.includes('docker.io')) {
    server.files.set('/usr/sbin/dockerd', '')
    return start()
  }
  return true
}
const run: Run = async (argv, options) => {
  const is_done = does(argv, typeof options.stdin === 'string' ? options.stdin : '')
  return {
    ...{ exit_code: is_done ? 0 : 1, stdout: '', stderr: is_done ? '' : 'no such package' },
    ...{ timed_out: false, aborted: false, truncated: false, duration_ms: 0 },
  } satisfies RunResult
}
const session = {
  run,
  openEngine: async () => {
    if (!server.is_up) throw new Error('connect ENOENT')
    return connect(socket)
  },
}
const install = () => installEngineOn(session, new AbortController().signal, 0)
const installed = () => server.did.filter((line) => line.includes('docker.io')).length

describe('an engine on another server', () => {
  test('that was installed gives containers users of their own', async () => {
    await install()
    expect(JSON.parse(server.files.get(SETTINGS)!)).toEqual({ 'userns-remap': 'default' })
    expect([server.is_up, installed()]).toEqual([true, 1])
  })
  test('gives none where the kernel has none, or an earlier engine left something', async () => {
    server.refuses.add('unshare')
    await install()
    expect([server.is_up, server.files.has(SETTINGS)]).toEqual([true, false])
    server.files = new Map([['/var/lib/docker/overlay2', '']])
    server.is_up = false
    server.refuses.clear()
    await install()
    expect([server.is_up, server.files.has(SETTINGS)]).toEqual([true, false])
  })
  test('that does not start with them starts without', async () => {
    hindered = '{ "userns-remap": "default" }\n'
    await install()
    expect([server.is_up, server.files.has(SETTINGS)]).toEqual([true, false])
  })
  test('that somebody set up is started, and left as it is', async () => {
    server.files = new Map([
      ['/usr/sbin/dockerd', ''],
      [SETTINGS, '{ "bip": "172.30.0.1/16" }'],
    ])
    await install()
    expect([server.is_up, server.files.get(SETTINGS), installed()]).toEqual([
      true,
      '{ "bip": "172.30.0.1/16" }',
      0,
    ])
    server.did = []
    await install()
    expect(server.did).toEqual([])
  })
  test('that cannot be installed, or does not answer, is told of', async () => {
    server.refuses.add('apt-get')
    await expect(install()).rejects.toThrow(
      'The container engine could not be installed: apt-get says: no such package',
    )
    server.files.set('/usr/sbin/dockerd', '')
    hindered = 'nothing'
    server.refuses = new Set(['systemctl'])
    await expect(install()).rejects.toThrow('was installed, but does not answer')
  })
})
