import { Cron } from 'croner'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
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
    const never = Array.from({ length: 60 }, (_, minute) => `${minute} 0 30 2 *`)
    const costOf = (work: (cron: string) => void): number => {
      const { user, system } = process.cpuUsage()
      never.forEach(work)
      const after = process.cpuUsage()
      return after.user + after.system - user - system
    }
    const until_9999 = costOf((cron) => expect(new Cron(cron, { paused: true }).nextRun()).toBeNull())
    expect(costOf((cron) => expect(faultOf(cron)).toBeDefined())).toBeLessThan(until_9999 / 2)
  })
})
