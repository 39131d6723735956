import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ApiFault } from '../../cli/client/api.ts'
import { type Deployment, requireLive } from '../../cli/client/follow-deployment.ts'
import { facts, show, table } from '../../cli/client/output.ts'
import { reportError } from '../../cli/report-error.ts'
import { createProgress, say } from '../../cli/terminal.ts'

/** What takes over a terminal: its clipboard, its title, its keyboard, what is on it, in both spellings. */
const HOSTILE = '\u001b]52;c;cm0gLXJm\u0007\u001b]0;title\u001b\\\u001b[2J\u009b6n\u0090q\u001bc\rover\b'
const COLOURED = '\u001b[31mred\u001b[0m'
/** All that may steer a terminal: colours, tabs and line ends. */
const steers = (text: string) =>
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/.test(text.replaceAll(/\u001b\[[0-9;]*m/g, ''))

let written: string
beforeEach(() => {
  written = ''
  for (const stream of [process.stdout, process.stderr]) {
    Object.defineProperty(stream, 'isTTY', { value: true, configurable: true })
    vi.spyOn(stream, 'write').mockImplementation((chunk) => {
      written += String(chunk)
      return true
    })
  }
})
afterEach(() => {
  vi.restoreAllMocks()
  for (const stream of [process.stdout, process.stderr])
    Object.defineProperty(stream, 'isTTY', { value: undefined, configurable: true })
  process.exitCode = 0
})

function reported(work: () => void, words: string[] = []): void {
  try {
    work()
  } catch (error) {
    reportError(error, words)
  }
}

describe('a terminal', () => {
  it.each<[what: string, write: (text: string) => void]>([
    ['a line', (text) => say(text)],
    ['a table', (text) => show({}, [], () => table(['name'], [[text]]))],
    ['facts', (text) => show({}, {}, () => facts([['name', text]]))],
    ['JSON', (text) => show({ json: true }, { name: text }, () => '')],
    ['progress', (text) => createProgress(process.stdout).show(text)],
    [
      'what a server refuses',
      (text) =>
        reported(() => {
          throw new ApiFault(409, 'CONFLICT', text)
        }),
    ],
    [
      'the same for programs',
      (text) =>
        reported(() => {
          throw new ApiFault(409, text, text)
        }, ['--json']),
    ],
    [
      'what an app or its build said when it failed',
      (text) =>
        reported(() =>
          requireLive({
            status: 'failed',
            error: { step: text, message: text, hint: text, log: [text] },
          } as unknown as Deployment),
        ),
    ],
  ])('is not steered by what comes from elsewhere, as %s', (_what, write) => {
    write(`before ${HOSTILE}${COLOURED} after`)
    expect([steers(written.replace(/^\r\u001b\[K/, '')), written.includes('after')]).toEqual([false, true])
  })
  it('shows colours and lines as they are, and JSON that means the same', () => {
    say(`a\tb\n${COLOURED}`)
    expect(written).toBe(`a\tb\n${COLOURED}\n`)
    written = ''
    show({ json: true }, { name: HOSTILE }, () => '')
    expect(JSON.parse(written)).toEqual({ name: HOSTILE })
  })
  it('is the only reader that is spared: a file or a program gets every byte', () => {
    Object.defineProperty(process.stdout, 'isTTY', { value: false, configurable: true })
    say(HOSTILE)
    expect(written).toBe(`${HOSTILE}\n`)
  })
})
