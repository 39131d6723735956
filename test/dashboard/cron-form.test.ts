import { describe, expect, it } from 'vitest'
import { bodyOf, formOf } from '@/features/cron/form'
import { readHeaders, textOf } from '@/features/cron/headers'

describe('the form of a cron job', () => {
  it('sends a line for the shell, or a list of arguments where one was written', () => {
    const form = { ...formOf(undefined, 'app_1'), command: 'npm run clean' }
    expect(bodyOf(form).command).toBe('npm run clean')
    expect(bodyOf({ ...form, command: '["node", "clean.js", "a b"]' }).command).toEqual([
      'node',
      'clean.js',
      'a b',
    ])
    expect(bodyOf({ ...form, command: '[ -f x ] && rm x' }).command).toBe('[ -f x ] && rm x')
  })
  it('sends the time that was chosen, or else the expression', () => {
    const form = { ...formOf(undefined, 'app_1'), expression: '5 4 * * *' }
    expect(bodyOf({ ...form, preset: '@hourly' }).expression).toBe('@hourly')
    expect(bodyOf({ ...form, preset: '' }).expression).toBe('5 4 * * *')
  })
  it('leaves the body of a call alone unless another one was written', () => {
    const form = { ...formOf(undefined, 'app_1'), kind: 'http', url: 'https://example.com/' }
    expect(bodyOf(form).http).not.toHaveProperty('body')
    expect(bodyOf({ ...form, body: '{}' }).http).toMatchObject({ body: '{}' })
  })
  it('reads headers as they are written, with colons in their values', () => {
    const headers = { Authorization: 'Bearer a:b', 'X-One': '' }
    expect(readHeaders(`${textOf(headers)}\n\n  `)).toEqual(headers)
  })
})
