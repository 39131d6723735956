import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { PassThrough, type Readable } from 'node:stream'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { dumpStream, heldBack, runInside } from '#server/databases/commands'
import type { ContainerCommand } from '#server/databases/engine'
import { engineOf } from '#server/databases/engines'
import type { DatabaseInstance } from '#server/databases/instance'
import { SILENCE_LIMIT_MS } from '#server/databases/silence'
import type { Engine } from '#server/platform/engine/engine'

const READY: ContainerCommand = { argv: ['true'], env: {} }

/** Begins a command that is held, as a container does. */
function begin(command: ContainerCommand, probe: ContainerCommand, awaited: Promise<unknown>) {
  const held = heldBack(command, probe, awaited)
  const [program, ...rest] = held.command.argv
  const child = spawn(program!, rest, { env: { ...process.env, ...held.command.env } })
  // Where what is awaited never comes, the input breaks off.
  held.input.on('error', () => child.stdin.end())
  held.input.pipe(child.stdin)
  return { output: text(child.stdout), ended: once(child, 'close').then(([code]) => code as number) }
}

describe('a command that is held back', () => {
  const listing = (env: Record<string, string> = {}, stdin?: string): ContainerCommand => ({
    argv: ['sh', '-c', 'echo "$MARK $1"; cat', 'sh', "it's one word"],
    env,
    ...(stdin === undefined ? {} : { stdin }),
  })

  it('does nothing before what it waits for has come, and reads its own input only', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const order: string[] = []
    const { output, ended } = begin(listing({ MARK: 'made' }, 'first\nsecond'), READY, promise)
    void output.then(() => order.push('ended'))
    // A second one that waits for nothing is through before: the first one had the time to begin.
    await begin(listing(), READY, Promise.resolve()).ended
    order.push('opened')
    resolve()
    expect(await output).toBe("made it's one word\nfirst\nsecond")
    expect([await ended, order]).toEqual([0, ['opened', 'ended']])
  })
  it('asks its server until that takes commands', async () => {
    const asked: ContainerCommand = {
      argv: ['sh', '-c', 'cat; test -e "$TRIED" || { : > "$TRIED"; exit 1; }'],
      env: { TRIED: `/tmp/held-${process.pid}-${Math.random()}` },
    }
    const { output, ended } = begin(listing({ MARK: 'made' }, 'all of it'), asked, Promise.resolve())
    expect([await output, await ended]).toEqual(["made it's one word\nall of it", 0])
  })
  it('never begins when what it waits for does not come', async () => {
    const { output, ended } = begin(listing({ MARK: 'made' }, 'x'), READY, Promise.reject(new Error('ended')))
    expect([await output, (await ended) > 0]).toEqual(['', true])
  })
})

describe('what a program in a database prints', () => {
  const signal = new AbortController().signal
  const credentials = { username: 'app', password: 'p1', database: 'shop', admin_password: 'p2' }
  /** An engine whose programs print this, and end with their output. */
  const printing = (stdout: Readable): Pick<Engine, 'exec'> => ({
    exec: async () => ({
      stdin: new PassThrough().resume(),
      stdout,
      done: once(stdout, 'close').then(() => ({ exit_code: 0, stderr: '' })),
    }),
  })

  it('is read no further than any answer goes', async () => {
    let printed = 0
    const endless = new PassThrough({
      read() {
        printed += 64 * 1024
        this.push(Buffer.alloc(64 * 1024))
      },
    })
    const command = { argv: ['psql'], env: {} }
    const running = runInside(printing(endless) as Engine, 'one', command, {}, signal)
    await expect(running).rejects.toThrow('psql printed more than 16 MiB and was ended.')
    expect([endless.destroyed, printed < 32 * 1024 ** 2]).toEqual([true, true])
  })

  describe('as a dump', () => {
    afterEach(() => void vi.useRealTimers())
    /** A dump that is read, and the program's side of it. */
    function dumping(name: string) {
      vi.useFakeTimers()
      const printed = new PassThrough()
      const engine = engineOf(name)
      const instance: DatabaseInstance = {
        ...{ engine, version: engine.lines[0]!, credentials },
        run: (...asked) => runInside(printing(printed) as Engine, 'one', ...asked),
      }
      const dump = dumpStream(instance, signal)
      const failed = new Promise<Error>((resolve) => dump.once('error', resolve))
      return { printed, dump, failed }
    }
    const almost = SILENCE_LIMIT_MS - 1000

    it('ends where nothing comes any more, as behind a table that somebody keeps locked', async () => {
      const { printed, dump, failed } = dumping('mariadb')
      dump.resume()
      for (let piece = 0; piece < 3; piece++) {
        await vi.advanceTimersByTimeAsync(almost)
        printed.write('INSERT')
      }
      expect(dump.destroyed).toBe(false)
      await vi.advanceTimersByTimeAsync(SILENCE_LIMIT_MS + 1000)
      expect((await failed).message).toBe('mariadb-dump printed nothing for 30 minutes and was ended.')
    })
    it('waits for a reader who takes the time, and for a server that has to be done first', async () => {
      const slow = dumping('mariadb')
      slow.printed.write('INSERT')
      const quiet = dumping('clickhouse')
      quiet.dump.resume()
      await vi.advanceTimersByTimeAsync(3 * SILENCE_LIMIT_MS)
      expect([slow.dump.destroyed, quiet.dump.destroyed]).toEqual([false, false])
    })
  })
})
