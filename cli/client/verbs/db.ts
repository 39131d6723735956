import { CommandError } from '../../terminal.ts'
import { dataOf } from '../api.ts'
import { all, appId } from '../apps.ts'
import { defineClientVerb, withApp } from '../client-verb.ts'
import { EXIT } from '../exit-codes.ts'
import { pointInTime } from '../option-values.ts'
import { ago, facts, paint, show, status, table } from '../output.ts'
import { requireTyped } from '../prompt.ts'
import { type ClientOptions, openSession, type Session } from '../session.ts'

/** The id of a database; undefined when there is none of that name. */
async function findDatabase({ api }: Session, name: string): Promise<string | undefined> {
  if (/^db_[0-9a-z]+$/.test(name)) return name
  const found = await all((query) =>
    dataOf(api.GET('/api/databases', { params: { query: { ...query, q: name.slice(0, 100) } } })),
  )
  const fitting = found.filter((one) => one.name === name)
  if (fitting.length > 1)
    throw new CommandError(`Several projects have a database ${name}. Name it by its id.`, EXIT.USAGE)
  return fitting[0]?.id
}
async function databaseId(session: Session, name: string): Promise<string> {
  const id = await findDatabase(session, name)
  if (id === undefined)
    throw new CommandError(`There is no database ${name}. See: portreeve db`, EXIT.NOT_FOUND)
  return id
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

async function unlink(name: string, options: ClientOptions & { app?: string }): Promise<void> {
  const session = await openSession(options)
  const path = { id: await databaseId(session, name), app_id: await appId(session, options.app) }
  await dataOf(session.api.DELETE('/api/databases/{id}/links/{app_id}', { params: { path } }))
  show(options, path, () => `The app loses the address of ${name} with its next deployment.`)
}

async function backup(name: string, options: ClientOptions): Promise<void> {
  const session = await openSession(options)
  const id = await databaseId(session, name)
  const { data } = await dataOf(
    session.api.POST('/api/databases/{id}/backup', { params: { path: { id } }, body: {} }),
  )
  show(options, data, () => `The backup ${data.id} is ${data.status}.`)
}

const backupsOf = async ({ api }: Session, id: string) =>
  (await dataOf(api.GET('/api/backups', { params: { query: { target_id: id, per_page: 100 } } }))).data

async function listBackups(name: string, options: ClientOptions): Promise<void> {
  const session = await openSession(options)
  const found = await backupsOf(session, await databaseId(session, name))
  show(options, found, () =>
    found.length === 0
      ? `There are no backups. Take one: portreeve db backup ${name}`
      : table(
          ['id', 'status', 'bytes', 'taken'],
          found.map((one) => [one.id, status(one.status), String(one.size_bytes ?? ''), ago(one.created_at)]),
        ),
  )
}

const NEXT = 'How it goes: portreeve db show'
interface RestoreOptions extends ClientOptions {
  backup?: string
  at?: string
  as?: string
  yes?: boolean
}
/** Which backup is meant; undefined for a moment. */
async function chosenBackup(session: Session, id: string, name: string, options: RestoreOptions) {
  if (options.at !== undefined && options.backup !== undefined)
    throw new CommandError('A backup or a moment is restored, not both.', EXIT.USAGE)
  if (options.at !== undefined || options.backup !== undefined) return options.backup
  const newest = (await backupsOf(session, id)).find((one) => one.status === 'succeeded')
  if (!newest)
    throw new CommandError(`${name} has no backup. Take one: portreeve db backup ${name}`, EXIT.NOT_FOUND)
  return newest.id
}

/** What comes back of a database that is gone: its last backup, under its name or another one. */
async function bringBack(session: Session, name: string, backup_id: string, options: RestoreOptions) {
  const { data } = await dataOf(
    session.api.POST('/api/backups/{id}/restore', {
      params: { path: { id: backup_id } },
      body: { mode: 'new', name },
    }),
  )
  show(options, data, () => `${name} is being made of the backup ${backup_id}. ${NEXT} ${name}`)
}

async function restore(name: string, options: RestoreOptions): Promise<void> {
  const session = await openSession(options)
  const found = await findDatabase(session, name)
  if (found === undefined && options.backup !== undefined)
    return bringBack(session, options.as ?? name, options.backup, options)
  const id = found ?? (await databaseId(session, name))
  const backup_id = await chosenBackup(session, id, name, options)
  const what = backup_id === undefined ? `as it was at ${options.at}` : `of the backup ${backup_id}`
  await requireTyped(name, {
    yes: options.yes || options.as !== undefined,
    to: 'put it in the place of what is there',
    warning: `Puts ${name} ${what} in the place of what it holds now.`,
    done: 'restored',
  })
  const body = {
    ...(backup_id === undefined ? { at: options.at! } : { backup_id }),
    ...(options.as === undefined ? {} : { mode: 'new' as const, name: options.as }),
  }
  const { data } = await dataOf(
    session.api.POST('/api/databases/{id}/restore', { params: { path: { id } }, body }),
  )
  const into = options.as ?? name
  show(options, data, () => `${into} is being made ${what}. ${NEXT} ${into}`)
}

async function remove(
  name: string,
  options: ClientOptions & { yes?: boolean; skipBackup?: boolean },
): Promise<void> {
  const session = await openSession(options)
  const id = await databaseId(session, name)
  const warning = `Deletes ${name} and its data.`
  await requireTyped(name, { yes: options.yes, to: 'delete it', warning, done: 'deleted' })
  const query = options.skipBackup ? { skip_backup: 'true' as const } : {}
  const { data } = await dataOf(
    session.api.DELETE('/api/databases/{id}', { params: { path: { id }, query } }),
  )
  show(options, data, () =>
    data.final_backup_id
      ? `Deleting ${name}, after the backup ${data.final_backup_id}. The way back: portreeve db restore ${name} --backup ${data.final_backup_id}`
      : `Deleting ${name}.`,
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
  withApp(
    verb
      .command('unlink')
      .summary('take its address from an app')
      .argument(...name),
  ).action(unlink)
  verb
    .command('backup')
    .summary('take a backup now')
    .argument(...name)
    .action(backup)
  verb
    .command('backups')
    .summary('list its backups')
    .argument(...name)
    .action(listBackups)
  verb
    .command('restore')
    .summary('bring back what a backup holds, or a moment')
    .argument(...name)
    .option('--backup <id>', 'which backup (default: the newest)')
    .option('--at <time>', 'a moment instead, such as 2026-11-22T08:00:00Z, of PostgreSQL', pointInTime)
    .option('--as <name>', 'into a new database of this name (default: in place)')
    .option('-y, --yes', 'do not ask')
    .action(restore)
  verb
    .command('delete')
    .summary('delete a database, after a last backup')
    .argument(...name)
    .option('--skip-backup', 'without the last backup')
    .option('-y, --yes', 'do not ask')
    .action(remove)
})
