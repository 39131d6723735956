import { planJson, planText } from '../../project/plan-text.ts'
import { fileFor, type PlanOptions, planOf, withFile } from '../../project/options.ts'
import { defineClientVerb } from '../client-verb.ts'
import { EXIT } from '../exit-codes.ts'
import { show } from '../output.ts'

async function plan(options: PlanOptions & { check?: boolean }): Promise<void> {
  const { live, changes, refusals } = await planOf(options, await fileFor(options))
  const makes = live.id === undefined ? { makes: live.name } : {}
  show(options, planJson(changes, refusals), () =>
    planText(changes, { prune: options.prune === true, refusals, ...makes }),
  )
  const due = changes.filter(({ action }) => action !== 'extra' || options.prune)
  if (refusals.size > 0) process.exitCode = EXIT.REFUSED
  else if (options.check && (due.length > 0 || live.id === undefined)) process.exitCode = EXIT.FAILED
}

export default defineClientVerb((verb) => {
  withFile(verb)
    .description(
      'Shows what portreeve apply would change, and what of it would be refused. Values of secrets are not shown.',
    )
    .option('--check', 'end with 1 when there is something to do')
    .action(plan)
})
