import { resolve } from 'node:path'
import { Readable } from 'node:stream'
import { CommandError, say } from '../../terminal.ts'
import { dataOf, type Schemas } from '../api.ts'
import { appName, findAppId } from '../apps.ts'
import { defineClientVerb, withApp } from '../client-verb.ts'
import { EXIT } from '../exit-codes.ts'
import { finishDeployment } from '../finish-deployment.ts'
import { sourceArchive } from '../source-archive.ts'
import { sourceFiles } from '../source-files.ts'
import { type ClientOptions, openSession, type Session } from '../session.ts'

interface DeployOptions extends ClientOptions {
  app?: string
  branch?: string
  commit?: string
  cache: boolean
  project?: string
  wait: boolean
}

/** The app of that name, or a new one for source that is sent. */
async function ensureApp(session: Session, name: string, options: DeployOptions) {
  const id = await findAppId(session, name)
  if (id !== undefined)
    return (await dataOf(session.api.GET('/api/apps/{id}', { params: { path: { id } } }))).data
  const body = {
    name,
    source: 'upload' as const,
    ...(options.project === undefined ? {} : { project_id: options.project }),
  }
  const app = (await dataOf(session.api.POST('/api/apps', { body }))).data
  if (!options.json) say(`Created the app ${app.name}.`)
  return app
}

/** Sends a folder. It is packed while it is sent, so that its size needs no room here. */
async function upload(session: Session, id: string, folder: string, is_quiet: boolean): Promise<string> {
  const files = await sourceFiles(folder)
  if (!is_quiet) say(`Sending ${files.length} files of ${folder}.`)
  const archive = sourceArchive(folder, files)
  const broken = new Promise<never>((_resolve, reject) => archive.once('error', reject))
  broken.catch(() => undefined)
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/gzip' },
    body: Readable.toWeb(archive) as unknown as ReadableStream,
    duplex: 'half',
  }
  const answer = await Promise.race([session.send(`/api/apps/${id}/upload`, init as RequestInit), broken])
  return ((await answer.json()) as { data: Schemas['Deployment'] }).data.id
}

async function deploy(folder: string | undefined, options: DeployOptions): Promise<void> {
  const session = await openSession(options)
  const name = appName(options.app, folder)
  const { branch, commit } = options
  const is_of_repository = branch !== undefined || commit !== undefined
  // What cannot go on must not leave an app behind that nobody wanted.
  const is_known = (await findAppId(session, name)) !== undefined
  if (!is_known && is_of_repository)
    throw new CommandError(
      `There is no app ${name}, and --branch and --commit are for apps of a repository.`,
      EXIT.NOT_FOUND,
    )
  if (!is_known) await sourceFiles(resolve(folder ?? '.'))
  const app = await ensureApp(session, name, options)
  if (folder === undefined && app.source !== 'upload') {
    const body = {
      ...(branch === undefined ? {} : { branch }),
      ...(commit === undefined ? {} : { commit }),
      ...(options.cache ? {} : { no_cache: true }),
    }
    const { data } = await dataOf(
      session.api.POST('/api/apps/{id}/deploy', { params: { path: { id: app.id } }, body }),
    )
    return finishDeployment(session, data.id, options)
  }
  if (app.source !== 'upload')
    throw new CommandError(
      `${app.name} is deployed from ${app.git_url ?? app.image ?? app.source}, not from a folder. Deploy it without one: portreeve deploy --app ${app.name}`,
      EXIT.REFUSED,
    )
  if (is_of_repository)
    throw new CommandError(
      'A folder is sent as it is; --branch and --commit are for apps of a repository.',
      EXIT.USAGE,
    )
  const id = await upload(session, app.id, resolve(folder ?? '.'), options.json === true)
  await finishDeployment(session, id, options)
}

export default defineClientVerb((verb) => {
  withApp(
    verb
      .description(
        'Deploys an app and shows how that goes. A folder (default: this one) is sent as git would track it: what .gitignore names stays here. The app is called like the folder, and made when there is none. An app of a repository or an image is deployed from there.',
      )
      .argument('[folder]', 'folder to send'),
  )
    .option('--branch <name>', 'another branch, for this deployment only')
    .option('--commit <sha>', 'a certain commit')
    .option('--no-cache', 'build without the layers of earlier builds')
    .option('--project <id>', 'project to make the app in, when there is none')
    .option('--no-wait', 'do not wait until it serves')
    .action(deploy)
})
