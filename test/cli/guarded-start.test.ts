import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { guardedStart } from '../../cli/upgrade/guarded-start.ts'
import { createPatience } from '../../cli/upgrade/patience.ts'
import { readTrial, type Trial, writeTrial } from '../../cli/upgrade/trial.ts'

const TRIAL: Trial = {
  state: 'placed',
  from_version: '1.0.0',
  to_version: '2.0.0',
  to_build: 'new',
  program: '/nowhere/portreeve',
  old_program: '/nowhere/portreeve.old',
  database_copy: null,
  attempts: 0,
  reason: null,
}
let data: string
let server: Server
let env: Record<string, string>
/** Answers of `/readyz` so far, and what they say. */
let answers: number
let status: 'ok' | 'starting'
const ended = vi.fn()
beforeEach(async () => {
  data = mkdtempSync(join(tmpdir(), 'ptr-guarded-'))
  mkdirSync(join(data, 'upgrade'))
  writeTrial(data, TRIAL)
  answers = 0
  status = 'starting'
  server = createServer((_request, response) => {
    answers += 1
    response.end(JSON.stringify({ status, checks: {} }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  env = { PORTREEVE_DATA_DIR: data, HOST: '127.0.0.1', PORT: String(port) }
  process.on('SIGTERM', ended)
})
afterEach(() => {
  vi.useRealTimers()
  process.off('SIGTERM', ended)
  ended.mockReset()
  server.close()
  rmSync(data, { recursive: true, force: true })
})

describe('a new program that is tried', () => {
  it('is not given up for the time in which a large database is copied and migrated', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] })
    expect(guardedStart(env, 'new', '2.0.0')).toBe(true)
    // In one piece, in which nobody could look.
    vi.advanceTimersByTime(10 * 60_000)
    await vi.waitFor(() => expect(answers).toBe(1), { timeout: 60_000 })
    status = 'ok'
    await vi.waitFor(
      () => {
        vi.advanceTimersByTime(250)
        expect(readTrial(data)?.state).not.toBe('trying')
      },
      { timeout: 60_000 },
    )
    expect([readTrial(data), ended.mock.calls]).toMatchObject([{ state: 'done' }, []])
  })
  it('is given up after a minute in which somebody looked', () => {
    let now = 0
    const isOver = createPatience(60_000, 5_000, () => now)
    now += 600_000
    expect(isOver()).toBe(false)
    const looks = Array.from({ length: 300 }, () => {
      now += 250
      return isOver()
    })
    expect(looks.indexOf(true) * 250).toBe(60_000 - 5_000 - 250)
  })
})
