import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { quoteCommand } from '#server/platform/cluster/quote'
import { commandOf } from '#server/platform/cluster/remote-run'

const HOSTILE = [
  'plain',
  '',
  ' ',
  "it's",
  "''",
  '"double" $HOME `id` $(id)',
  'a\nb\r\tc',
  '; rm -rf /',
  '\\',
  "\\'",
  '*?[a]{b,c}~',
  '!history',
  '-n',
  'ü 漢 🐳',
  '#comment',
  '&& || | > < &',
]

describe('a command for another server', () => {
  test.each(['sh', 'bash'])('arrives at %s as the arguments that were given', (shell) => {
    const line = quoteCommand(['printf', '%s\\0', ...HOSTILE])
    const printed = execFileSync(shell, ['-s'], { input: line, encoding: 'utf8' })
    expect(printed.split('\0').slice(0, -1)).toEqual(HOSTILE)
  })
  test('is refused where an argument cannot be said', () => {
    expect(() => quoteCommand(['printf', 'a\0b'])).toThrow('NUL')
  })
  test('becomes root without a question where the login is not', () => {
    expect(commandOf(['ip', 'link'], true)[0]).toBe('env')
    expect(commandOf(['ip', 'link'], false).slice(0, 4)).toEqual(['sudo', '-n', '--', 'env'])
    expect(commandOf(['ip', 'link'], false).slice(-2)).toEqual(['ip', 'link'])
  })
})
