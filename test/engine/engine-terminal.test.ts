import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '#server/kernel/ids'
import type { Engine, Instance } from '#server/platform/engine/engine'
import type { TerminalProcess } from '#server/platform/engine/workload'
import { BUSYBOX_IMAGE, ensureBusyboxImage, testDocker, testEngine } from '#test/support/engine-images'
import { poll } from '#test/support/poll'
import { testWorkload } from '#test/support/workload'

const project_id = newId('prj')
const release_id = newId('rel')
const network = `test-${project_id}`
const calm = new AbortController().signal
let engine: Engine
let instance: Instance

beforeAll(async () => {
  await ensureBusyboxImage()
  engine = testEngine()
  await engine.ensureNetwork(network, { project: project_id })
  const workload = testWorkload({
    project_id,
    release_id,
    image: BUSYBOX_IMAGE,
    shell_command: 'exec sleep 600',
    network,
  })
  instance = (await engine.ensureRelease(workload, calm))[0]!
})
afterAll(async () => {
  await engine.removeRelease(release_id, 0)
  await engine.removeNetwork(network)
  await engine.close()
})

/** A terminal whose output is kept, so that a test can wait for what it shows. */
async function open(session = newId('trm')) {
  const terminal: TerminalProcess = await engine.openTerminal(
    instance.id,
    { session, cols: 91, rows: 33 },
    calm,
  )
  let shown = ''
  terminal.stream.on('data', (chunk: Buffer) => {
    shown += chunk.toString()
  })
  return {
    ...terminal,
    session,
    type: (text: string) => terminal.stream.write(text),
    shows: (pattern: RegExp) => poll(() => pattern.test(shown)),
  }
}
const processes = async () => {
  const { Processes } = (await testDocker().getContainer(instance.id).top()) as { Processes: string[][] }
  return Processes.map((row) => row.at(-1)!).join('\n')
}

describe('a terminal in a container', () => {
  test('is a terminal of the size that was asked for, follows a new size, and tells the exit code', async () => {
    const terminal = await open()
    terminal.type('test -t 0 && echo is-$((40+2)) $TERM\n')
    await terminal.shows(/is-42 xterm-256color/)
    terminal.type('stty size\n')
    await terminal.shows(/33 91/)
    await terminal.resize({ cols: 120, rows: 40 })
    terminal.type('stty size\n')
    await terminal.shows(/40 120/)
    terminal.type('exit 7\n')
    expect(await terminal.done).toBe(7)
  })

  test('takes an interrupt as a person types it', async () => {
    const terminal = await open()
    terminal.type('sleep 500; echo code-$?\n')
    await poll(async () => (await processes()).includes('sleep 500'))
    terminal.type('\u0003')
    terminal.type('echo back-$((1+1))\n')
    await terminal.shows(/back-2/)
    terminal.type('exit\n')
    await terminal.done
  })

  test('that is hung up leaves nothing behind, not even what ignores the signal or left its session', async () => {
    const terminal = await open()
    terminal.type("sleep 611 & setsid sleep 612 & (trap '' HUP TERM; sleep 613) &\n")
    await poll(async () => ((await processes()).match(/sleep 61[123]/g) ?? []).length === 3)
    await engine.hangUpTerminal(instance.id, terminal.session)
    await terminal.done
    await poll(async () => !/sleep 61\d/.test(await processes()))
    expect(await processes()).toContain('sleep 600')
  })

  test('holds a program that floods it while nobody reads', async () => {
    const session = newId('trm')
    const terminal = await engine.openTerminal(instance.id, { session, cols: 80, rows: 24 }, calm)
    terminal.stream.pause()
    terminal.stream.write('yes abcdefghijklmnopqrstuvwxyz\n')
    await poll(() => terminal.stream.readableLength > 0)
    expect(terminal.stream.readableLength).toBeLessThan(1024 * 1024)
    terminal.stream.destroy()
    await terminal.done
    await engine.hangUpTerminal(instance.id, session)
    // The shell runs `yes` within itself.
    await poll(async () => !(await processes()).split('\n').includes('/bin/sh'))
  })

  test('of a container that is removed ends, and has no exit code or that of a kill', async () => {
    const terminal = await open()
    terminal.type('echo ready-$((2+3))\n')
    await terminal.shows(/ready-5/)
    const ended = once(terminal.stream, 'close')
    await engine.removeRelease(release_id, 0)
    await ended
    expect([undefined, 137]).toContain(await terminal.done)
  })
})
