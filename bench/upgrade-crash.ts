/**
 * Everything of Portreeve is killed with -9 at every change that an upgrade makes to its files: once with a release
 * that brings a migration and serves, once with one that brings it and does not start. After each kill, and whatever
 * its supervisor starts then, the old program serves with the old database or the new one with the new.
 * `npx node bench/upgrade-crash.ts [--from=1] [--to=99]`. Needs a build, an engine, and 3 GB in the temporary folder.
 */
import { eventually } from '#test/support/portreeve'
import { addMigration, createUpgradeStage, endAfterMigration } from '#test/support/upgrade-stage'
import { createReport, numberOptions } from './support/report.ts'

const options = numberOptions({ from: 1, to: 99 })
const report = createReport('kill -9 at every change of the files of an upgrade')
const stage = await createUpgradeStage()
const faults: string[] = []
let kills = 0
try {
  const old = await stage.release('1.0.0', () => undefined)
  const good = await stage.release('2.0.0', addMigration)
  const bad = await stage.release('3.0.0', (output) => {
    addMigration(output)
    endAfterMigration(output)
  })
  for (const [name, place] of [
    ['good', good],
    ['bad', bad],
  ] as const)
    for (let number = options.from; number <= options.to; number++) {
      await stage.install(old)
      const before = stage.database()
      const killer = stage.killAt((_change, at) => at === number)
      const { code } = await stage.run('upgrade', place)
      // The command may be dead while the server goes on with the trial.
      await eventually(
        'The end of the trial',
        async () => {
          await stage.ready()
          return ['placed', 'trying', 'failed'].includes(stage.trial()?.state ?? 'done') &&
            (await stage.version()) !== '1.0.0'
            ? undefined
            : true
        },
        300_000,
      )
      killer.stop()
      const found = { version: await stage.version(), ...stage.database() }
      const is_old = found.version === '1.0.0' && found.schema === before.schema
      const is_new = name === 'good' && found.version === '2.0.0' && found.schema === before.schema + 1
      const holds = (is_old || is_new) && JSON.stringify(found.projects) === JSON.stringify(before.projects)
      const at = killer.changes[number - 1]
      if (!holds) faults.push(`${name} ${number} (${at}): ${JSON.stringify(found)}`)
      if (at === undefined) {
        report.figure(`${name}: changes of a whole upgrade; it ended with ${code}`, killer.changes.length)
        break
      }
      kills++
      report.figure(
        `${name} ${number} ${at}`,
        `${found.version}, schema ${found.schema}${holds ? '' : ' FAULT'}`,
      )
    }
} finally {
  await stage.dispose()
}
report.figure('kills', kills)
report.check('the old or the new, each with its database', faults.length === 0, faults.join('; ') || 'always')
report.end()
