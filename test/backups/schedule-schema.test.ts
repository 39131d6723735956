import { Cron } from 'croner'
import * as v from 'valibot'
import { describe, expect, it, vi } from 'vitest'
import { NewSchedule } from '#server/backups/schedule-schema'

const faultOf = (cron: string) =>
  v.safeParse(NewSchedule, { name: 'nightly', target: 'database', target_id: 'dbs_1', cron }).issues?.[0]
    .message

describe('the times of a backup', () => {
  it.each(['30 3 * * *', ' 30  3 * *\tMON ', '@daily', '@WEEKLY', '0 0 29 2 1', '0 0 L * *'])(
    'may be %j',
    (cron) => expect(faultOf(cron)).toBeUndefined(),
  )
  it.each(['0 0 31 2 *', '* * * * * *', '0 0\n1 * * *', 'at noon', '', '1,'.repeat(400_000)])(
    'may not be %.20j',
    (cron) => expect(faultOf(cron)).toBeDefined(),
  )
  it.each(['2099-01-01T00:00:00Z', '2099-01-01', 'http://a:99999/'])(
    'may not be one moment, which never comes again: %s',
    (cron) => expect(faultOf(cron)).toMatch(/^must be a cron expression of five fields/),
  )
  it('that never come are refused without a look at eight thousand years', () => {
    /** How far the library looks: it makes dates on the way. */
    const looksOf = (work: () => void): number => {
      const dates = vi.spyOn(Date, 'UTC')
      work()
      const { length } = dates.mock.calls
      dates.mockRestore()
      return length
    }
    const never = '0 0 30 2 *'
    const until_9999 = looksOf(() => expect(new Cron(never, { paused: true }).nextRun()).toBeNull())
    const looks = looksOf(() => expect(faultOf(never)).toBeDefined())
    expect(looks).toBeGreaterThan(0)
    expect(looks * 5).toBeLessThan(until_9999)
  })
})
