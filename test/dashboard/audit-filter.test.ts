import { expect, it } from 'vitest'
import { idOf, kindOf, queryOf } from '../../dashboard/src/features/audit/filter.ts'

const NONE = { action: '', actor: '', resource: '', time: '', from: '', to: '' }
const NOW = Date.parse('2026-05-10T12:00:00Z')

it('a filter that is empty asks for every line', () => {
  expect(queryOf(NONE, NOW)).toEqual({})
})
it('an action is one of its kind, or all of a kind', () => {
  expect(queryOf({ ...NONE, action: ' App' }, NOW)).toEqual({ action: 'app.' })
  expect(queryOf({ ...NONE, action: 'app.create' }, NOW)).toEqual({ action: 'app.create' })
  expect(queryOf({ ...NONE, action: 'cron job' }, NOW)).toEqual({ action: 'cron_job.' })
})
it('a time is some days up to now, or from one moment to another', () => {
  expect(queryOf({ ...NONE, time: '7', from: 'left over' }, NOW)).toEqual({
    from: '2026-05-03T12:00:00.000Z',
  })
  const own = { ...NONE, time: 'own', from: '2026-05-01T00:00:00Z', to: '' }
  expect(queryOf(own, NOW)).toEqual({ from: '2026-05-01T00:00:00.000Z' })
})
it('a target is one resource or a kind of them', () => {
  expect([kindOf('app'), idOf('app')]).toEqual(['app', ''])
  expect([kindOf('app_01234567890123456789'), idOf('app_01234567890123456789')]).toEqual([
    '',
    'app_01234567890123456789',
  ])
})
