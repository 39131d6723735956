import type { Change } from '#server/project-file/diff'
import type { ProjectFile } from '#server/project-file/schema'
import { applyChanges } from '../../project/apply.ts'
import { requireNoRefusals } from '../../project/checks.ts'
import { fileFor, type PlanOptions, planOf, withFile } from '../../project/options.ts'
import { planJson, planText } from '../../project/plan-text.ts'
import { requireSecrets, type SecretValues, secretsFrom } from '../../project/secrets.ts'
import { CommandError, jsonText, say } from '../../terminal.ts'
import { defineClientVerb } from '../client-verb.ts'
import { EXIT } from '../exit-codes.ts'
import { canAsk, prompt } from '../prompt.ts'

export interface ApplyVerbOptions extends PlanOptions {
  secrets?: string
  yes?: boolean
  deploy?: boolean
  wait?: boolean
}

async function confirm({ yes }: ApplyVerbOptions): Promise<void> {
  if (yes) return
  if (!canAsk()) throw new CommandError('Say --yes to do it.', EXIT.USAGE)
  if (!/^y(es)?$/i.test(await prompt('Do it? [y/N] ')))
    throw new CommandError('Nothing was changed.', EXIT.USAGE)
}

/** Shows the plan of a file, asks, and does it. */
export async function applyFile(
  file: ProjectFile,
  options: ApplyVerbOptions,
  secrets: SecretValues = secretsFrom(options.secrets),
): Promise<void> {
  const { session, live, changes, refusals } = await planOf(options, file)
  const prune = options.prune === true
  const makes = live.id === undefined ? { makes: live.name } : {}
  const due: Change[] = changes.filter(({ action }) => action !== 'extra' || prune)
  if (!options.json)
    say(planText(changes, { prune: options.only_adds ? 'never' : prune, refusals, ...makes }))
  if (due.length === 0 && live.id !== undefined) {
    if (options.json) say(jsonText(planJson([]), 2))
    return
  }
  requireNoRefusals(refusals)
  requireSecrets(due, secrets)
  await confirm(options)
  await applyChanges(session, live, due, {
    prune,
    secrets,
    deploy: options.deploy !== false,
    wait: options.wait !== false,
    is_quiet: options.json === true,
    tell: (line) => void (options.json || say(line)),
  })
  const done =
    options.wait === false
      ? 'All is set as the file says; what is deployed or removed may still go on.'
      : 'Done: all is as the file says.'
  say(options.json ? jsonText(planJson(due), 2) : done)
}

export default defineClientVerb((verb) => {
  withFile(verb)
    .description(
      'Makes a project as portreeve.yaml says, and deploys what has changed. Again, it changes nothing. What fails leaves what was done; a second call goes on.',
    )
    .option('--secrets <file>', 'dotenv file with the values of new secrets; [app] begins those of one app')
    .option('-y, --yes', 'do not ask')
    .option('--no-deploy', 'change the settings and deploy nothing')
    .option('--no-wait', 'do not wait until it serves, and until what is removed is gone')
    .action(async (options: ApplyVerbOptions) => applyFile(await fileFor(options), options))
})
