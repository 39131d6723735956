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
  it('that never come are refused without a look at eight thousand years', () => {
    const before = process.cpuUsage()
    for (let hour = 0; hour < 24; hour += 1) expect(faultOf(`0 ${hour} 30 2 *`)).toBeDefined()
    const { user, system } = process.cpuUsage(before)
    expect((user + system) / 1000).toBeLessThan(800)
  })
})
