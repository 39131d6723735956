import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LockedError, lockDirectory } from '#server/kernel/lock'
import { ROOT } from '#test/support/routes'

let directory: string
let child: ChildProcess | undefined
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'portreeve-lock-'))
})
afterEach(() => {
  child?.kill('SIGKILL')
  rmSync(directory, { recursive: true, force: true })
})

/** A second process that takes the directory and then says so, or says why not. */
async function takeInChild(): Promise<string> {
  const script = `
    import { lockDirectory } from '#server/kernel/lock'
    try {
      const release = lockDirectory(process.argv[1])
      // Later than whoever asks now begins to wait.
      process.on('SIGUSR2', () => setTimeout(release, 300))
      // Whoever drops the result of the call must not lose the lock to the garbage collector.
      for (let n = 0; n < 5; n += 1) { globalThis.gc(); await new Promise((resolve) => setTimeout(resolve, 1)) }
      console.log('taken')
      setInterval(() => undefined, 1000)
    }
    catch (error) { console.log(error.message) }`
  child = spawn(process.execPath, ['--expose-gc', '--input-type=module', '-e', script, '--', directory], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(child.stdout!, 'data')) as [Buffer]
  return line.toString().trim()
}

describe('the data directory', () => {
  it('is refused to a second process, with what to do', async () => {
    const release = lockDirectory(directory)
    expect(await takeInChild()).toBe(
      `Another Portreeve is running on ${directory}. Stop it first, or set PORTREEVE_DATA_DIR to another folder.`,
    )
    release()
  })
  it('is free again at once after the process that held it was killed', async () => {
    expect(await takeInChild()).toBe('taken')
    expect(() => lockDirectory(directory)).toThrow(LockedError)
    const ended = once(child!, 'exit')
    child!.kill('SIGKILL')
    await ended
    lockDirectory(directory)()
  })
  it('is waited for by a start, which a command that only looks must not end', async () => {
    expect(await takeInChild()).toBe('taken')
    child!.kill('SIGUSR2')
    lockDirectory(directory, 30_000)()
  })
  it('is free after it was given back', () => {
    lockDirectory(directory)()
    lockDirectory(directory)()
  })
})
