import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { run, SpawnError } from '#server/kernel/process'

let cwd: string
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'portreeve-process-'))
})
afterEach(() => rmSync(cwd, { recursive: true, force: true }))

/** Runs a Node program given as text. */
const program = (source: string, options: Partial<Parameters<typeof run>[1]> = {}, ...args: string[]) =>
  run([process.execPath, '-e', source, ...args], { cwd, ...options })

const alive = (pid: number): boolean => {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.startsWith('Z')
  } catch {
    return false
  }
}
const pidIn = (file: string): Promise<number> =>
  vi.waitFor(
    () => {
      const pid = Number(readFileSync(join(cwd, file), 'utf8'))
      expect(pid).toBeGreaterThan(0)
      return pid
    },
    { timeout: 60_000, interval: 20 },
  )

describe('a command', () => {
  it('gets its arguments as they are: no shell reads them', async () => {
    const hostile = [
      '$(touch marker)',
      '`touch marker`',
      '; touch marker',
      '| touch marker',
      '\' " \\ \n *',
      '~',
      '${HOME}',
    ]
    const { stdout } = await program(
      'console.log(JSON.stringify(process.argv.slice(1)))',
      {},
      '--',
      ...hostile,
    )
    expect(JSON.parse(stdout)).toEqual(hostile)
    expect(existsSync(join(cwd, 'marker'))).toBe(false)
  })

  it('inherits nothing from the environment of the server', async () => {
    process.env.PORTREEVE_CANARY = 'secret'
    const { stdout } = await program('console.log(JSON.stringify(Object.keys(process.env).sort()))', {
      env: { GIVEN: '1' },
    })
    delete process.env.PORTREEVE_CANARY
    expect(JSON.parse(stdout)).toEqual(['GIVEN', 'LANG', 'LC_ALL', 'PATH'])
  })

  it('reads its standard input, and secrets from descriptors of their own', async () => {
    const { stdout } = await program(
      'const fs = require("fs"); console.log(fs.readFileSync(0, "utf8") + fs.readFileSync(3, "utf8") + fs.readFileSync(4, "utf8"))',
      { stdin: 'in ', descriptors: ['three ', 'four'] },
    )
    expect(stdout).toBe('in three four\n')
  })

  it('may ignore what it is given', async () => {
    expect(
      await program('', { stdin: 'x'.repeat(1_000_000), descriptors: ['y'.repeat(1_000_000)] }),
    ).toMatchObject({
      exit_code: 0,
    })
  })

  it('reports its exit code and a signal that ended it', async () => {
    expect(await program('process.exit(7)')).toMatchObject({
      exit_code: 7,
      timed_out: false,
      aborted: false,
    })
    expect(await program('process.kill(process.pid, "SIGKILL")')).toMatchObject({ exit_code: 137 })
  })

  it('that is not installed, or has no folder, is an error that names it', async () => {
    await expect(run(['portreeve-no-such-program'], { cwd })).rejects.toThrow(
      new SpawnError('portreeve-no-such-program', 'ENOENT'),
    )
    await expect(run(['true'], { cwd: join(cwd, 'absent') })).rejects.toBeInstanceOf(SpawnError)
    await expect(run(['printf', 'a\0b'], { cwd })).rejects.toThrow(TypeError)
    await expect(run([], { cwd })).rejects.toThrow(TypeError)
  })
})

describe('output', () => {
  it('arrives line by line, progress bars included, cut when a line has no end', async () => {
    const lines: string[] = []
    await program('process.stdout.write("a\\r50%\\r100%\\r\\nb"); process.stderr.write("x".repeat(100000))', {
      onLine: (line, stream) => lines.push(`${stream} ${line}`),
    })
    expect(lines.filter((line) => line.startsWith('stdout'))).toEqual([
      'stdout a',
      'stdout 50%',
      'stdout 100%',
      'stdout b',
    ])
    expect(lines.filter((line) => line.startsWith('stderr'))).toEqual([`stderr ${'x'.repeat(8192)}`])
  })

  it('is kept within its limit: the start of stdout, the end of stderr', async () => {
    const result = await program(
      'process.stdout.write("start" + "o".repeat(1e6)); process.stderr.write("e".repeat(1e6) + "end")',
      { max_output_bytes: 1000 },
    )
    expect(result.truncated).toBe(true)
    expect(result.stdout).toBe(`start${'o'.repeat(995)}`)
    expect(result.stderr).toBe(`${'e'.repeat(997)}end`)
  })

  it('of programs that print as fast as they can is taken in pieces, with others served in between', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    const end = new AbortController()
    const taken = [0, 0, 0, 0]
    const flood = taken.map((_, one) =>
      run(['yes', 'x'.repeat(63)], {
        cwd,
        signal: end.signal,
        max_output_bytes: 1000,
        onLine: () => {
          taken[one]! += 64
          // Each line takes so long that whoever is asked after it has worked enough.
          vi.advanceTimersByTime(10)
        },
      }),
    )
    let most = 0
    while (Math.min(...taken) < 8 * 1024 ** 2) {
      const before = [...taken]
      await setImmediate()
      most = Math.max(most, ...taken.map((bytes, one) => bytes - before[one]!))
    }
    end.abort()
    await Promise.all(flood)
    vi.useRealTimers()
    // What a pipe holds, once or twice: it was megabytes.
    expect(most).toBeLessThanOrEqual(128 * 1024)
  })

  it('that is not read yet when its program ends is not lost', async () => {
    const { stdout } = await program('process.stdout.write("o".repeat(3e6) + "end")', {
      max_output_bytes: 4e6,
    })
    expect(stdout).toHaveLength(3e6 + 3)
  })

  it('that its reader cannot bear ends the command and rejects', async () => {
    const waiting = program('console.log("line"); setInterval(() => {}, 1000)', {
      onLine: () => {
        throw new Error('full')
      },
    })
    await expect(waiting).rejects.toThrow('full')
  })
})

describe('the end', () => {
  const STUBBORN = `
    const { spawn } = require('child_process'); const fs = require('fs')
    process.on('SIGTERM', () => {})
    const child = spawn(process.execPath, ['-e', "process.on('SIGTERM', () => {}); require('fs').writeFileSync('grandchild', String(process.pid)); setInterval(() => {}, 1000)"], { stdio: 'inherit' })
    fs.writeFileSync('child', String(process.pid)); setInterval(() => {}, 1000)`

  it('of an aborted command is the end of everything it started, even of what ignores SIGTERM', async () => {
    const controller = new AbortController()
    const running = program(STUBBORN, { signal: controller.signal })
    const pids = [await pidIn('child'), await pidIn('grandchild')]
    controller.abort()
    expect(await running).toMatchObject({ aborted: true, timed_out: false, exit_code: 137 })
    await expect.poll(() => pids.filter(alive)).toEqual([])
  })

  it('comes by itself at the time limit', async () => {
    expect(await program('setInterval(() => {}, 1000)', { timeout_ms: 200 })).toMatchObject({
      timed_out: true,
      aborted: false,
      exit_code: 143,
    })
  })

  it('of a command takes along what it left behind in the background', async () => {
    writeFileSync(
      join(cwd, 'background.js'),
      "require('fs').writeFileSync('left', String(process.pid)); setInterval(() => {}, 1000)",
    )
    await program(`const fs = require('fs'); require('child_process').spawn(process.execPath, ['background.js'], { stdio: 'inherit' }).unref()
      const wait = setInterval(() => { if (fs.existsSync('left') && fs.readFileSync('left', 'utf8')) { clearInterval(wait); process.exit(0) } }, 10)`)
    const pid = await pidIn('left')
    await expect.poll(() => alive(pid)).toBe(false)
  })

  it('does not wait for a process that left the group and holds the output open', async () => {
    await program(`const fs = require('fs'); require('child_process').spawn(process.execPath, ['-e', "require('fs').writeFileSync('escaped', String(process.pid)); setInterval(() => {}, 1000)"], { stdio: 'inherit', detached: true }).unref()
      const wait = setInterval(() => { if (fs.existsSync('escaped') && fs.readFileSync('escaped', 'utf8')) { clearInterval(wait); process.exit(0) } }, 10)`)
    process.kill(await pidIn('escaped'), 'SIGKILL')
  })

  it('comes before the start when the signal has been aborted already', async () => {
    const result = await program('require("fs").writeFileSync("started", "")', {
      signal: AbortSignal.abort(),
    })
    expect(result).toMatchObject({ aborted: true })
    expect(existsSync(join(cwd, 'started'))).toBe(false)
  })
})
