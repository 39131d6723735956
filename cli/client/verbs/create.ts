import { CommandError } from '../../terminal.ts'
import { dataOf } from '../api.ts'
import { defineClientVerb } from '../client-verb.ts'
import { EXIT } from '../exit-codes.ts'
import { wholeNumber } from '../option-values.ts'
import { show } from '../output.ts'
import { readText } from '../read-text.ts'
import { finishDeployment } from '../finish-deployment.ts'
import { type ClientOptions, openSession } from '../session.ts'

interface CreateOptions extends ClientOptions {
  git?: string
  branch?: string
  image?: string
  dockerfile?: string
  upload?: boolean
  project?: string
  port?: number
  wait: boolean
}

/** What the app is made from: exactly one of the options. */
function sourceOf({ git, branch, image, dockerfile, upload }: CreateOptions) {
  const given = [git, image, dockerfile, upload].filter((one) => one !== undefined)
  if (given.length !== 1)
    throw new CommandError('Give one source: --git, --image, --dockerfile or --upload.', EXIT.USAGE)
  if (git !== undefined) return { git_url: git, ...(branch === undefined ? {} : { branch }) }
  if (image !== undefined) return { image }
  return dockerfile === undefined ? { source: 'upload' as const } : { dockerfile: readText(dockerfile) }
}

async function create(name: string, options: CreateOptions): Promise<void> {
  const source = sourceOf(options)
  const session = await openSession(options)
  const body = {
    name,
    ...source,
    ...(options.project === undefined ? {} : { project_id: options.project }),
    ...(options.port === undefined ? {} : { port: options.port }),
  }
  const app = (await dataOf(session.api.POST('/api/apps', { body }))).data
  if (options.upload)
    return show(
      options,
      app,
      () => `Created ${app.name}. Send its source: portreeve deploy <folder> --app ${app.name}`,
    )
  await finishDeployment(session, app.latest_deployment!.id, options)
}

export default defineClientVerb((verb) => {
  verb
    .description(
      'Makes an app from a repository, an image or a Dockerfile, and deploys it. From a folder of this machine it is made by portreeve deploy.',
    )
    .argument('<name>', 'lower-case letters, digits and hyphens')
    .option('--git <url>', 'repository, by https or ssh')
    .option('--branch <name>', 'branch to deploy (default: the HEAD of the remote)')
    .option('--image <name>', 'image to run as it is')
    .option('--dockerfile <file>', 'Dockerfile to build without any other file')
    .option('--upload', 'source that is sent by portreeve deploy')
    .option('--project <id>', 'project to make it in')
    .option('--port <number>', 'port that the app listens on (default: detected)', wholeNumber)
    .option('--no-wait', 'do not wait until it serves')
    .action(create)
})
