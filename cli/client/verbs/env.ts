import { MASK } from '#server/kernel/schemas'
import { CommandError, jsonText, say } from '../../terminal.ts'
import { dataOf, type Schemas } from '../api.ts'
import { all, appId } from '../apps.ts'
import { defineClientVerb, withApp } from '../client-verb.ts'
import { EXIT } from '../exit-codes.ts'
import { ago, paint, show, table } from '../output.ts'
import { readInput } from '../prompt.ts'
import { readText } from '../read-text.ts'
import { type ClientOptions, openSession } from '../session.ts'

type EnvOptions = ClientOptions & { app?: string }

async function appOf(options: EnvOptions) {
  const session = await openSession(options)
  return { api: session.api, id: await appId(session, options.app) }
}

async function list(options: EnvOptions): Promise<void> {
  const { api, id } = await appOf(options)
  const variables = await all((query) =>
    dataOf(api.GET('/api/apps/{id}/env', { params: { path: { id }, query } })),
  )
  const linked = await all((query) =>
    dataOf(api.GET('/api/databases', { params: { query: { ...query, app_id: [id] } } })),
  )
  // One of its own counts instead of a link's.
  const own = new Set(variables.map(({ key }) => key))
  const given = linked.flatMap(({ name, links = [] }) =>
    links
      .filter(({ key }) => !own.has(key))
      .map(({ key }) => [key, MASK, 'runtime', `with the database ${name}`]),
  )
  show(options, variables, () =>
    variables.length + given.length === 0
      ? 'There are no variables. Set one: portreeve env set KEY=value'
      : table(
          ['key', 'value', 'scopes', 'changed'],
          [
            ...variables.map((one) => [
              one.key,
              one.value === null ? paint('red', 'unreadable') : one.value.replaceAll('\n', '⏎'),
              one.scopes.join(', '),
              ago(one.updated_at),
            ]),
            ...given,
          ],
        ),
  )
}

const NEXT = 'The next deployment takes it in: portreeve deploy'
function emit(options: EnvOptions, report: Schemas['VariableReport']): void {
  const parts = (['added', 'changed', 'removed'] as const).flatMap((kind) =>
    report[kind].length > 0 ? [`${kind}: ${report[kind].join(', ')}`] : [],
  )
  show(options, report, () =>
    parts.length === 0 ? 'Nothing was different.' : `${parts.join('; ')}. ${NEXT}`,
  )
}

/** `KEY=value` for each; a value of `-` is read from standard input, which no list of processes shows. */
async function assignments(words: readonly string[]): Promise<Record<string, string>> {
  const pairs = words.map((word): [string, string] => {
    const at = word.indexOf('=')
    if (at < 1) throw new CommandError(`${word} is no assignment. Write KEY=value.`, EXIT.USAGE)
    return [word.slice(0, at), word.slice(at + 1)]
  })
  const asked = pairs.filter(([, value]) => value === '-')
  if (asked.length > 1) throw new CommandError('Only one value can come from standard input.', EXIT.USAGE)
  const input = asked.length === 1 ? await readInput() : ''
  return Object.fromEntries(pairs.map(([key, value]) => [key, value === '-' ? input : value]))
}

async function set(words: string[], options: EnvOptions & { secret?: boolean }): Promise<void> {
  const variables = await assignments(words)
  const { api, id } = await appOf(options)
  const body = { variables, mode: 'merge' as const, ...(options.secret ? { secret: true } : {}) }
  const { data } = await dataOf(api.POST('/api/apps/{id}/env/import', { params: { path: { id } }, body }))
  emit(options, data)
}

async function unset(keys: string[], options: EnvOptions): Promise<void> {
  const { api, id } = await appOf(options)
  for (const key of keys)
    await dataOf(api.DELETE('/api/apps/{id}/env/{key}', { params: { path: { id, key } } }))
  show(options, { removed: keys }, () => `removed: ${keys.join(', ')}. ${NEXT}`)
}

async function load(file: string, options: EnvOptions & { replace?: boolean }): Promise<void> {
  const text = file === '-' ? await readInput() : readText(file)
  const { api, id } = await appOf(options)
  const body = { text, mode: options.replace ? ('replace' as const) : ('merge' as const) }
  const { data } = await dataOf(api.POST('/api/apps/{id}/env/import', { params: { path: { id } }, body }))
  emit(options, data)
}

async function save(options: EnvOptions & { reveal?: boolean }): Promise<void> {
  const session = await openSession(options)
  const id = await appId(session, options.app)
  const answer = await session.send(`/api/apps/${id}/env/export?reveal=${options.reveal === true}`, {})
  const text = (await answer.text()).trimEnd()
  say(options.json ? jsonText({ text }) : text)
}

export default defineClientVerb((verb) => {
  verb.description('Variables of an app. Changes reach it with its next deployment.')
  withApp(verb.command('list', { isDefault: true }).summary('list them, secrets masked')).action(list)
  withApp(verb.command('set').summary('set some'))
    .argument('<KEY=value...>', 'assignments; KEY=- reads the value from standard input')
    .option('--secret', 'mask them in answers and logs')
    .action(set)
  withApp(verb.command('unset').summary('remove some')).argument('<KEY...>', 'names').action(unset)
  withApp(verb.command('import').summary('set all of a dotenv file'))
    .argument('<file>', 'the file, or - for standard input')
    .option('--replace', 'remove what the file does not name')
    .action(load)
  withApp(verb.command('export').summary('print them as a dotenv file'))
    .option('--reveal', 'with secrets in clear; the audit log says so')
    .action(save)
})
