import { Argument } from 'commander'
import { dataOf } from '../api.ts'
import { all, type App, type AppOption, appId, getApp, namedApp } from '../apps.ts'
import { defineClientVerb, withApp, withNamedApp } from '../client-verb.ts'
import { wholeNumber } from '../option-values.ts'
import { ago, facts, paint, show, status, table } from '../output.ts'
import { requireTyped } from '../prompt.ts'
import { type ClientOptions, openSession } from '../session.ts'

async function list(options: ClientOptions): Promise<void> {
  const { api } = await openSession(options)
  const apps = await all((query) => dataOf(api.GET('/api/apps', { params: { query } })))
  show(options, apps, () =>
    apps.length === 0
      ? 'There are no apps yet. Make one: portreeve deploy, in a folder with source code'
      : table(
          ['name', 'status', 'domain', 'created'],
          apps.map((app) => [app.name, status(app.status), app.domain, ago(app.created_at)]),
        ),
  )
}

/** An app as people read it. */
export const appText = (app: App): string =>
  facts([
    ['name', paint('bold', app.name)],
    ['status', status(app.status)],
    ['address', app.url],
    ['source', app.git_url ?? app.image ?? app.source],
    ['branch', app.branch],
    ['replicas', String(app.replicas)],
    [
      'deployment',
      app.latest_deployment
        ? `#${app.latest_deployment.number} ${status(app.latest_deployment.status)}, ${ago(app.latest_deployment.created_at)}`
        : null,
    ],
    ['deploy again', app.needs_redeploy ? `for ${app.changed_keys.join(', ')}` : null],
    ['error', app.last_error === null ? null : paint('red', app.last_error)],
    ['id', app.id],
  ])

async function showApp(argument: string | undefined, options: ClientOptions & AppOption): Promise<void> {
  const name = namedApp(argument, options)
  const app = await getApp(await openSession(options), name)
  show(options, app, () => appText(app))
}

const act =
  (action: 'start' | 'stop' | 'restart', done: string) =>
  async (argument: string | undefined, options: ClientOptions & AppOption): Promise<void> => {
    const name = namedApp(argument, options)
    const session = await openSession(options)
    const id = await appId(session, name)
    const answer = await dataOf(session.api.POST(`/api/apps/{id}/${action}`, { params: { path: { id } } }))
    show(options, answer.data, () => done)
  }

async function scale(replicas: number, options: ClientOptions & AppOption): Promise<void> {
  const session = await openSession(options)
  const id = await appId(session, options.app)
  const path = { params: { path: { id } } }
  const { data } = await dataOf(session.api.PUT('/api/apps/{id}/scaling', { ...path, body: { replicas } }))
  show(options, data, () =>
    replicas === 0
      ? 'The app goes to sleep. The next request wakes it.'
      : `Scaling to ${replicas}, without a gap. How it goes: portreeve status --app ${options.app ?? id}`,
  )
}

/** What a push does to an app; a rollback leaves it off. */
async function followPushes(state: string, options: ClientOptions & AppOption): Promise<void> {
  const session = await openSession(options)
  const id = await appId(session, options.app)
  const change = { params: { path: { id } }, body: { auto_deploy: state === 'on' } }
  const { data } = await dataOf(session.api.PUT('/api/apps/{id}', change))
  show(options, data, () =>
    data.auto_deploy
      ? `Pushes to ${data.branch ?? 'the default branch'} deploy ${data.name}. What was pushed meanwhile: portreeve deploy --app ${data.name}`
      : `Pushes do not deploy ${data.name}.`,
  )
}

async function remove(
  name: string,
  options: ClientOptions & { yes?: boolean; volumes?: boolean },
): Promise<void> {
  const session = await openSession(options)
  const app = await getApp(session, name)
  const warning = `Deletes ${app.name} with its domains, variables and history.`
  await requireTyped(app.name, { yes: options.yes, to: 'delete it', warning, done: 'deleted' })
  const query = options.volumes ? { volumes: true } : {}
  const answer = await dataOf(
    session.api.DELETE('/api/apps/{id}', { params: { path: { id: app.id }, query } }),
  )
  show(options, answer.data, () => `Deleting ${app.name}.`)
}

export default defineClientVerb((verb) => {
  verb.description('Apps: what there is, and starting, stopping and deleting.')
  verb.command('list', { isDefault: true }).summary('list the apps').action(list)
  withNamedApp(verb.command('show').summary('all about one app')).action(showApp)
  withNamedApp(verb.command('start').summary('start a stopped app')).action(act('start', 'Started.'))
  withNamedApp(verb.command('stop').summary('stop an app')).action(act('stop', 'Stopped.'))
  withNamedApp(verb.command('restart').summary('replace the instances of an app, without a gap')).action(
    act('restart', 'Restarting, without a gap.'),
  )
  withApp(
    verb
      .command('scale')
      .summary('how many instances an app has; none puts it to sleep')
      .argument('<replicas>', 'number', wholeNumber),
  ).action(scale)
  withApp(
    verb
      .command('auto-deploy')
      .summary('whether a push deploys an app; a rollback turns it off')
      .addArgument(new Argument('<state>', 'on or off').choices(['on', 'off'])),
  ).action(followPushes)
  verb
    .command('delete')
    .summary('delete an app')
    .argument('<app>', 'name or id')
    .option('--volumes', 'delete the volumes that only this app mounts as well')
    .option('-y, --yes', 'do not ask')
    .action(remove)
})
