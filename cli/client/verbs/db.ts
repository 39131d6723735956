import { CommandError } from '../../terminal.ts'
import { dataOf } from '../api.ts'
import { all, appId } from '../apps.ts'
import { defineClientVerb, withApp } from '../client-verb.ts'
import { EXIT } from '../exit-codes.ts'
import { facts, paint, show, status, table } from '../output.ts'
import { canAsk, prompt } from '../prompt.ts'
import { type ClientOptions, openSession, type Session } from '../session.ts'

async function databaseId({ api }: Session, name: string): Promise<string> {
  if (/^db_[0-9a-z]+$/.test(name)) return name
  const found = await all((query) =>
    dataOf(api.GET('/api/databases', { params: { query: { ...query, q: name.slice(0, 100) } } })),
  )
  const fitting = found.filter((one) => one.name === name)
  if (fitting.length > 1)
    throw new CommandError(`Several projects have a database ${name}. Name it by its id.`, EXIT.USAGE)
  if (!fitting[0]) throw new CommandError(`There is no database ${name}. See: portreeve db`, EXIT.NOT_FOUND)
  return fitting[0].id
}

async function list(options: ClientOptions): Promise<void> {
  const { api } = await openSession(options)
  const found = await all((query) => dataOf(api.GET('/api/databases', { params: { query } })))
  show(options, found, () =>
    found.length === 0
      ? 'There are no databases. Make one: portreeve db create <name> --engine postgres'
      : table(
          ['name', 'engine', 'version', 'status'],
          found.map((one) => [one.name, one.engine, one.version, status(one.status)]),
        ),
  )
}

async function create(
  name: string,
  options: ClientOptions & { engine: string; dbVersion?: string; project?: string; public?: boolean },
): Promise<void> {
  const { api } = await openSession(options)
  const body = {
    name,
    engine: options.engine as 'postgres',
    ...(options.dbVersion === undefined ? {} : { version: options.dbVersion }),
    ...(options.project === undefined ? {} : { project_id: options.project }),
    ...(options.public ? { public: true } : {}),
  }
  const { data } = await dataOf(api.POST('/api/databases', { body }))
  show(options, data, () => `${data.name} is being made. Its address: portreeve db show ${data.name}`)
}

async function showOne(name: string, options: ClientOptions): Promise<void> {
  const session = await openSession(options)
  const id = await databaseId(session, name)
  const { data } = await dataOf(session.api.GET('/api/databases/{id}', { params: { path: { id } } }))
  show(options, data, () =>
    facts([
      ['name', paint('bold', data.name)],
      ['engine', `${data.engine} ${data.version}`],
      ['status', status(data.status)],
      ['address', data.connection_string],
      ['from outside', data.external_connection_string],
      ['error', data.last_error === null ? null : paint('red', data.last_error)],
      ['id', data.id],
    ]),
  )
}

async function link(name: string, options: ClientOptions & { app?: string; key: string }): Promise<void> {
  const session = await openSession(options)
  const id = await databaseId(session, name)
  const body = { app_id: await appId(session, options.app), key: options.key }
  const { data } = await dataOf(
    session.api.POST('/api/databases/{id}/links', { params: { path: { id } }, body }),
  )
  show(options, data, () => `The app gets ${options.key} with its next deployment.`)
}

async function backup(name: string, options: ClientOptions): Promise<void> {
  const session = await openSession(options)
  const id = await databaseId(session, name)
  const { data } = await dataOf(
    session.api.POST('/api/databases/{id}/backup', { params: { path: { id } }, body: {} }),
  )
  show(options, data, () => `The backup ${data.id} is ${data.status}.`)
}

async function remove(
  name: string,
  options: ClientOptions & { yes?: boolean; skipBackup?: boolean },
): Promise<void> {
  const session = await openSession(options)
  const id = await databaseId(session, name)
  if (!options.yes) {
    if (!canAsk()) throw new CommandError('Say --yes to delete it.', EXIT.USAGE)
    if ((await prompt(`Deletes ${name} and its data. Type its name: `)) !== name)
      throw new CommandError('That is not its name; nothing was deleted.', EXIT.USAGE)
  }
  const query = options.skipBackup ? { skip_backup: 'true' as const } : {}
  const { data } = await dataOf(
    session.api.DELETE('/api/databases/{id}', { params: { path: { id }, query } }),
  )
  show(
    options,
    data,
    () => `Deleting ${name}${data.final_backup_id ? `, after the backup ${data.final_backup_id}` : ''}.`,
  )
}

export default defineClientVerb((verb) => {
  const name = ['<database>', 'name or id'] as const
  verb.description('Databases.')
  verb.command('list', { isDefault: true }).summary('list the databases').action(list)
  verb
    .command('create')
    .summary('make a database')
    .argument('<name>', 'lower-case letters, digits and hyphens')
    .requiredOption('--engine <name>', 'postgres, mysql, mariadb, mongodb, redis, valkey or clickhouse')
    .option('--db-version <version>', 'release line (default: the newest that is known to be stable)')
    .option('--project <id>', 'project to make it in')
    .option('--public', 'let clients from outside connect')
    .action(create)
  verb
    .command('show')
    .summary('state and address, with the password')
    .argument(...name)
    .action(showOne)
  withApp(
    verb
      .command('link')
      .summary('give an app its address')
      .argument(...name),
  )
    .option('--key <KEY>', 'variable of the app', 'DATABASE_URL')
    .action(link)
  verb
    .command('backup')
    .summary('take a backup now')
    .argument(...name)
    .action(backup)
  verb
    .command('delete')
    .summary('delete a database, after a last backup')
    .argument(...name)
    .option('--skip-backup', 'without the last backup')
    .option('-y, --yes', 'do not ask')
    .action(remove)
})
