import { expect, it } from 'vitest'
import { endOf } from '../../dashboard/src/features/terminal/ends.ts'

it('a terminal whose connection was lost offers another way than one whose shell has ended', () => {
  expect(endOf('connection_lost', null)).toEqual({
    title: 'The connection was lost',
    sentence: 'The connection to the server was lost, and the shell has ended with it.',
    action: 'Reconnect',
  })
  expect(endOf('exited', 3)).toEqual({
    title: 'The terminal has ended',
    sentence: 'The shell has ended with exit code 3.',
    action: 'Open a new one',
  })
  expect(endOf('refused', null, 'This image has no shell.').sentence).toBe('This image has no shell.')
})
