import { own } from '#server/kernel/own'
import { CommandError } from '../../terminal.ts'
import { defineClientVerb } from '../client-verb.ts'
import { readContexts, writeContexts } from '../contexts.ts'
import { EXIT } from '../exit-codes.ts'
import { paint, show, table } from '../output.ts'
import type { ClientOptions } from '../session.ts'

function list(options: ClientOptions): void {
  const { current, contexts } = readContexts(process.env)
  const rows = Object.entries(contexts).map(([name, { url, email, api_key }]) => ({
    name,
    url,
    email: email ?? null,
    by: api_key ? 'API key' : 'login',
    current: name === current,
  }))
  show(options, rows, () =>
    rows.length === 0
      ? 'Nobody is logged in. Log in with: portreeve login <address>'
      : table(
          ['', 'name', 'address', 'account', 'by'],
          rows.map((row) => [
            row.current ? paint('green', '*') : ' ',
            row.name,
            row.url,
            row.email ?? '',
            row.by,
          ]),
        ),
  )
}

function use(name: string, options: ClientOptions): void {
  const all = readContexts(process.env)
  const context = own(all.contexts, name)
  if (!context) throw new CommandError(`There is no context ${name}. See: portreeve context`, EXIT.NOT_FOUND)
  writeContexts(process.env, { ...all, current: name })
  show(options, { current: name, url: context.url }, () => `Commands now talk to ${context.url}.`)
}

export default defineClientVerb((verb) => {
  verb.description('Several servers: each login is a context, and one of them is the current one.')
  verb.command('list', { isDefault: true }).summary('list the servers').action(list)
  verb.command('use').summary('choose a server').argument('<name>', 'name of the context').action(use)
})
