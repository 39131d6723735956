import { CommandError } from '../../terminal.ts'
import { dataOf, type Schemas } from '../api.ts'
import { all, appId } from '../apps.ts'
import { defineClientVerb, withApp } from '../client-verb.ts'
import { EXIT } from '../exit-codes.ts'
import { paint, show, status, table } from '../output.ts'
import { type ClientOptions, openSession, type Session } from '../session.ts'

type Domain = Schemas['Domain']

const domainsOf = ({ api }: Session, app_id?: string) =>
  all((query) =>
    dataOf(
      api.GET('/api/domains', {
        params: { query: { ...query, ...(app_id === undefined ? {} : { app_id }) } },
      }),
    ),
  )

async function find(session: Session, hostname: string): Promise<Domain> {
  const found = (await domainsOf(session)).find(
    (one) => one.id === hostname || one.hostname === hostname || one.hostname_unicode === hostname,
  )
  if (!found) throw new CommandError(`There is no domain ${hostname}. See: portreeve domains`, EXIT.NOT_FOUND)
  return found
}

/** What is still to be set at the DNS provider. */
function recordsText({ dns_records, verification }: Domain): string {
  const open = dns_records.filter(({ ok }) => !ok)
  if (open.length === 0) return verification.message
  return [
    verification.message,
    'Set one of these at your DNS provider:',
    table(
      ['type', 'name', 'value', 'for'],
      open.map((one) => [one.type, one.name, one.value, one.purpose]),
    ),
  ].join('\n')
}

async function list(options: ClientOptions & { app?: string }): Promise<void> {
  const session = await openSession(options)
  const found = await domainsOf(
    session,
    options.app === undefined ? undefined : await appId(session, options.app),
  )
  const apps = await all((query) => dataOf(session.api.GET('/api/apps', { params: { query } })))
  const names = new Map(apps.map(({ id, name }) => [id, name]))
  const nameOf = (id: string) => names.get(id) ?? id
  show(options, found, () =>
    table(
      ['domain', 'status', 'tls', 'path', 'app'],
      found.map((one) => [
        one.hostname_unicode,
        status(one.status),
        one.ssl_mode,
        one.path,
        nameOf(one.app_id),
      ]),
    ),
  )
}

async function add(hostname: string, options: ClientOptions & { app?: string }): Promise<void> {
  const session = await openSession(options)
  const body = { app_id: await appId(session, options.app), hostname }
  const { data } = await dataOf(session.api.POST('/api/domains', { body }))
  show(options, data, () => `Added ${paint('bold', data.hostname_unicode)}. ${recordsText(data)}`)
}

async function verify(hostname: string, options: ClientOptions): Promise<void> {
  const session = await openSession(options)
  const { id } = await find(session, hostname)
  const { data } = await dataOf(session.api.POST('/api/domains/verify', { body: { domain_id: id } }))
  show(options, data, () => `${data.hostname_unicode} is ${status(data.status)}. ${recordsText(data)}`)
  // Scripts wait for it.
  if (['verified', 'active'].includes(data.status)) return
  const next = data.status === 'pending' ? ' It is looked up again by itself.' : ''
  throw new CommandError(`${data.hostname_unicode} is not proven yet.${next}`, EXIT.FAILED)
}

async function remove(hostname: string, options: ClientOptions): Promise<void> {
  const session = await openSession(options)
  const { id } = await find(session, hostname)
  const { data } = await dataOf(session.api.DELETE('/api/domains/{id}', { params: { path: { id } } }))
  show(options, data, () => `Removed ${hostname}.`)
}

export default defineClientVerb((verb) => {
  const name = ['<domain>', 'host name or id'] as const
  verb.description('Domains of apps.')
  verb
    .command('list', { isDefault: true })
    .summary('list the domains')
    .option('-a, --app <name>', 'only those of this app')
    .action(list)
  withApp(
    verb.command('add').summary('lead a domain to an app').argument('<hostname>', 'such as shop.example.com'),
  ).action(add)
  verb
    .command('verify')
    .summary('look up its DNS now; ends with 1 while it is not proven')
    .argument(...name)
    .action(verify)
  verb
    .command('remove')
    .summary('take it away')
    .argument(...name)
    .action(remove)
})
