import { existsSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Command } from 'commander'
import { fromCaprover } from '../../project/import/caprover.ts'
import { fromCompose } from '../../project/import/compose.ts'
import { engineAt, fromContainers } from '../../project/import/containers.ts'
import { fromCoolify } from '../../project/import/coolify.ts'
import { fromDokploy } from '../../project/import/dokploy.ts'
import type { Moved } from '../../project/import/moved.ts'
import { notesText, secretsOf, secretsText, settle, writable } from '../../project/import/settle.ts'
import { planOf } from '../../project/options.ts'
import { planJson, planText } from '../../project/plan-text.ts'
import { CommandError, jsonText, say } from '../../terminal.ts'
import { nameOfFolder } from '../apps.ts'
import { defineClientVerb } from '../client-verb.ts'
import { EXIT } from '../exit-codes.ts'
import { SECRETS_FILE } from '../source-files.ts'
import { readText } from '../read-text.ts'
import { applyFile, type ApplyVerbOptions } from './apply.ts'

interface ImportOptions extends ApplyVerbOptions {
  project?: string
  output?: string
  app?: string
  env?: string
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readText(path))
  } catch (error) {
    if (error instanceof CommandError) throw error
    throw new CommandError(`${path} is not JSON.`, EXIT.REFUSED)
  }
}

function refuseExisting(path: string): never {
  throw new CommandError(`${path} is there already. Name another file, or remove it.`, EXIT.REFUSED)
}

/** Writes a file that must not be there: what somebody has edited is not lost. */
function writeNew(path: string, text: string, mode: number): void {
  try {
    writeFileSync(path, text, { mode, flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    refuseExisting(path)
  }
}

/** Why there may be nothing, by what was read. */
const EMPTY = {
  compose: 'The file has no services.',
  containers: 'No container runs on this engine but those of Portreeve itself.',
  coolify:
    'The file has no applications, services or databases. What is read is the answer of GET /api/v1/applications, or an object with the lists applications, services and databases.',
  dokploy:
    'The file has no projects with applications, compose files or databases. What is read is the answer of project.all, project.one or application.one.',
  caprover:
    'The file has no apps: appDefinitions is missing or empty. What is read is config-captain.json, which lies in the folder data of a backup.',
} as const

/** Shows what becomes of everything, then what would be made; makes it only when it is asked to. */
async function move(found: Moved, options: ImportOptions, empty: string): Promise<void> {
  const moved = options.output === undefined ? found : writable(found)
  const { text, file, notes } = settle(moved, options.project)
  if (!options.json && notes.length > 0) say(notesText(notes))
  if (Object.keys(file.apps ?? {}).length + Object.keys(file.databases ?? {}).length === 0)
    throw new CommandError(
      notes.length > 0
        ? 'Nothing of it can be moved; the reasons are above.'
        : `There is nothing to move. ${empty}`,
      EXIT.REFUSED,
    )
  if (options.output !== undefined) {
    const secrets = secretsText(moved)
    const secrets_file = join(dirname(options.output), SECRETS_FILE)
    // Said before one of the two is written, which would stand in the way of the next call.
    if (secrets && existsSync(secrets_file)) refuseExisting(secrets_file)
    // What seems no secret may be one.
    writeNew(options.output, text, 0o600)
    if (secrets) writeNew(secrets_file, secrets, 0o600)
    return say(
      options.json
        ? jsonText({ notes, file: options.output })
        : `Wrote ${options.output}. Make it so: portreeve apply --file ${options.output}${secrets ? ` --secrets ${secrets_file}\n${secrets_file} holds the secrets in clear: keep it out of git, and remove it afterwards.` : ''}`,
    )
  }
  if (options.yes) return applyFile(file, { ...options, only_adds: true }, secretsOf(moved))
  const { live, changes, refusals } = await planOf({ ...options, only_adds: true }, file)
  const makes = live.id === undefined ? { makes: live.name } : {}
  say(
    options.json
      ? jsonText({ notes, plan: planJson(changes, refusals) })
      : `${planText(changes, { prune: 'never', refusals, ...makes })}\nNothing was changed. Do it: the same with --yes. Edit it first: --output portreeve.yaml. What runs there is not touched.`,
  )
}

const withMove = (verb: Command): Command =>
  verb
    .option(
      '--project <name>',
      'project to move it into; made when there is none (default: the default project)',
    )
    .option('-o, --output <file>', 'write portreeve.yaml, and portreeve.secrets beside it, instead of moving')
    .option('-y, --yes', 'do it; without, it is only shown')
    .option('--no-deploy', 'make everything and deploy nothing')
    .option('--no-wait', 'do not wait until it serves')

export default defineClientVerb((verb) => {
  verb.description(
    'Moves apps in from elsewhere: a plan first, and nothing there is touched. Data are not moved.',
  )
  withMove(verb.command('compose').summary('from a compose file'))
    .argument('<file>', 'the compose file')
    .option('-a, --app <name>', 'name of the app (default: that of its folder)')
    .option('--env <file>', 'dotenv file with its variables (default: .env beside it)')
    .action((path: string, options: ImportOptions) => {
      const beside = join(dirname(path), '.env')
      const env = options.env ?? (existsSync(beside) ? beside : undefined)
      const name = options.app ?? nameOfFolder(dirname(path))
      return move(
        fromCompose(
          readText(path),
          name,
          env === undefined ? undefined : readText(env),
          resolve(dirname(path)),
        ),
        options,
        EMPTY.compose,
      )
    })
  withMove(
    verb
      .command('containers')
      .summary('from containers that run on an engine, such as those of Dokku and Kamal'),
  )
    .option('--host <address>', 'the engine (default: DOCKER_HOST, else unix:///var/run/docker.sock)')
    .action(async (options: ImportOptions & { host?: string }) =>
      move(await fromContainers(engineAt(options.host)), options, EMPTY.containers),
    )
  const others = [
    [
      'coolify',
      'Coolify',
      'answer of its API: GET /api/v1/applications, or an object with applications, services and databases',
      fromCoolify,
    ],
    ['dokploy', 'Dokploy', 'answer of its API: project.all, project.one or application.one', fromDokploy],
    ['caprover', 'CapRover', 'config-captain.json of a backup', fromCaprover],
  ] as const
  for (const [name, called, what, convert] of others)
    withMove(verb.command(name).summary(`from what ${called} gives out`))
      .argument('<file>', what)
      .action((path: string, options: ImportOptions) => move(convert(readJson(path)), options, EMPTY[name]))
})
