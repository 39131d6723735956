import { dataOf } from '../api.ts'
import { all, type AppOption, appId, namedApp } from '../apps.ts'
import { defineClientVerb } from '../client-verb.ts'
import { facts, paint, show, span, status, table } from '../output.ts'
import { type ClientOptions, openSession, type Session } from '../session.ts'
import { appText } from './apps.ts'

async function serverStatus(session: Session, options: ClientOptions): Promise<void> {
  const { api } = session
  const [info, apps] = await Promise.all([
    dataOf(api.GET('/api/system/info')),
    dataOf(api.GET('/api/apps', { params: { query: { per_page: 1 } } })),
  ])
  const { data } = info
  show(options, { context: session.name, url: session.context.url, ...data, apps: apps.total }, () =>
    [
      facts([
        ['server', `${paint('bold', session.context.url)} (${session.name})`],
        ['version', data.version],
        ['up', span(data.uptime_s)],
        [
          'engine',
          data.engine.available ? (data.engine.version ?? 'there') : paint('red', 'does not answer'),
        ],
        ['edge', data.ingress.running ? 'running' : paint('red', 'not running')],
        ['apps', String(apps.total)],
        ['base domain', data.base_domain],
      ]),
      ...[data.ingress.message, ...data.warnings].flatMap((text) =>
        text ? [paint('yellow', `! ${text}`)] : [],
      ),
    ].join('\n'),
  )
}

async function appStatus(session: Session, name: string, options: ClientOptions): Promise<void> {
  const path = { id: await appId(session, name) }
  const params = { params: { path } }
  const [app, instances] = await Promise.all([
    dataOf(session.api.GET('/api/apps/{id}', params)),
    all((query) => dataOf(session.api.GET('/api/apps/{id}/instances', { params: { path, query } }))),
  ])
  // An app that sleeps has the status of one that runs, and nothing to show for it.
  const is_asleep =
    app.data.status === 'running' &&
    instances.length === 0 &&
    (await dataOf(session.api.GET('/api/apps/{id}/scaling', params))).data.status === 'asleep'
  show(options, { ...app.data, instances }, () =>
    [
      appText(app.data),
      ...(is_asleep ? ['', 'The app is asleep: the next request wakes it.'] : []),
      ...(instances.length === 0
        ? []
        : [
            '',
            table(
              ['process', 'state', 'health', 'restarts', 'up'],
              instances.map((one) => [
                `${one.process}.${one.index}`,
                status(one.state),
                one.health,
                String(one.restart_count),
                span(one.uptime_s),
              ]),
            ),
          ]),
    ].join('\n'),
  )
}

export default defineClientVerb((verb) => {
  verb
    .description('How the server is, or one app with its instances.')
    .argument('[app]', 'the same as --app')
    .option('-a, --app <name>', 'app, by name or id (default: the server)')
    .action(async (argument: string | undefined, options: ClientOptions & AppOption) => {
      const name = namedApp(argument, options)
      const session = await openSession(options)
      return name === undefined ? serverStatus(session, options) : appStatus(session, name, options)
    })
})
