import { afterEach, describe, expect, it, vi } from 'vitest'
import { createLog, escapeControl } from '#server/kernel/log'
import { isId, newId } from '#server/kernel/ids'
import { createMachine } from '#server/kernel/machine'
import { systemClock } from '#server/kernel/clock'

describe('an id', () => {
  it('is its prefix and 20 characters of 32, which are 100 random bits', () => {
    const ids = Array.from({ length: 2000 }, () => newId('app'))
    for (const id of ids) expect(id).toMatch(/^app_[0-9a-hjkmnp-tv-z]{20}$/)
    expect(new Set(ids).size).toBe(2000)
    const used = new Set(ids.flatMap((id) => [...id.slice(4)]))
    expect(used.size).toBe(32)
    expect(Math.log2(32) * 20).toBeGreaterThanOrEqual(96)
  })
  it.each([
    '',
    'app_',
    'app_short',
    'usr_0000000000000000000',
    'APP_00000000000000000000',
    'app_0000000000000000000I',
    `app_${'0'.repeat(21)}`,
    `app_${'0'.repeat(20)}\n`,
  ])('is not %j', (text) => {
    expect(isId('app', text)).toBe(false)
  })
  it('is told apart by its prefix', () => {
    expect([isId('app', newId('app')), isId('app', newId('dep')), isId('db', newId('db'))]).toEqual([
      true,
      false,
      true,
    ])
  })
})

describe('a machine', () => {
  const machine = createMachine<'running' | 'stopped', 'stop' | 'scale_up'>('an app', {
    running: { stop: 'stopped', scale_up: 'running' },
    stopped: {},
  })
  it('follows its table', () => {
    expect([
      machine.next('running', 'stop'),
      machine.accepts('running', 'stop'),
      machine.accepts('stopped', 'stop'),
    ]).toEqual(['stopped', true, false])
  })
  it('answers an impossible event with a conflict that is a sentence', () => {
    expect(() => machine.next('stopped', 'scale_up')).toThrow(
      expect.objectContaining({
        code: 'CONFLICT',
        message: 'Cannot scale up an app while it is stopped.',
      }),
    )
  })
})

describe('the log', () => {
  const write = (format: 'text' | 'json', level: 'error' | 'warn' | 'info' | 'debug' = 'debug') => {
    const lines: string[] = []
    return { lines, log: createLog(format, level, (line) => lines.push(line)) }
  }
  it('is one line a record as text, with its fields', () => {
    const { lines, log } = write('text')
    log.child({ job: 'job_1' }).warn('A step failed', { step: 'build', attempt: 2, nothing: undefined })
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z WARN\s+A step failed job=job_1 step=build attempt=2$/)
  })
  it('is one object a line as JSON, with the whole error', () => {
    const { lines, log } = write('json')
    log.error('Broken', { error: new Error('outer', { cause: new Error('inner') }) })
    expect(JSON.parse(lines[0]!)).toMatchObject({
      level: 'error',
      message: 'Broken',
      error: { message: 'outer', cause: { message: 'inner' } },
    })
  })
  it.each(['text', 'json'] as const)('cannot be forged by what users send: %s', (format) => {
    const { lines, log } = write(format)
    log.info('name: a\nb\r\u001b[31mred\u0007\u2028', {
      name: 'x\ny\u001b]8;;http://evil\u0007',
      error: new Error('multi\nline'),
    })
    expect(lines).toHaveLength(1)
    expect(lines[0]).not.toMatch(/[\n\r\u001b\u0007\u009b]/)
  })
  it('leaves out what is below its level', () => {
    const { lines, log } = write('text', 'warn')
    log.debug('a')
    log.info('b')
    log.warn('c')
    log.error('d')
    expect(lines.map((line) => line.at(-1))).toEqual(['c', 'd'])
  })
  it('repeats what repeats, instead of counting it', () => {
    const { lines, log } = write('text')
    for (let n = 0; n < 5; n += 1) log.info('same')
    expect(lines).toHaveLength(5)
  })
  it('survives fields that JSON cannot hold', () => {
    for (const format of ['text', 'json'] as const) {
      const { lines, log } = write(format)
      const circle: Record<string, unknown> = {}
      circle.self = circle
      log.info('odd', { circle, big: 10n, fn: () => 1 })
      expect(lines).toHaveLength(1)
      if (format === 'json') expect(JSON.parse(lines[0]!)).toMatchObject({ message: 'odd', big: '10n' })
    }
  })
  it('escapes control characters in any text', () => {
    expect(escapeControl('a\tb\nc\u001bd\u009be\u2028f')).toBe('a\tb\\nc\\x1bd\\x9be\\u2028f')
  })
  describe('on the terminal', () => {
    afterEach(() => vi.restoreAllMocks())
    it('writes errors and warnings to standard error and the rest to standard output', () => {
      const out = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
      const err = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
      const log = createLog('text', 'info')
      log.info('calm')
      log.warn('careful')
      log.error('bad')
      expect(out.mock.calls.map(([line]) => /calm\n$/.test(String(line)))).toEqual([true])
      expect(err.mock.calls.map(([line]) => /(careful|bad)\n$/.test(String(line)))).toEqual([true, true])
    })
  })
})

describe('the clock', () => {
  it('speaks UTC with milliseconds and never goes back where it measures', () => {
    expect(systemClock.iso()).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const before = systemClock.monotonic_ms()
    expect(systemClock.monotonic_ms()).toBeGreaterThanOrEqual(before)
  })
})
