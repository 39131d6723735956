import { CommandError } from '../../terminal.ts'
import { dataOf } from '../api.ts'
import { defineClientVerb } from '../client-verb.ts'
import { findContext, readContexts, writeContexts } from '../contexts.ts'
import { EXIT } from '../exit-codes.ts'
import { show } from '../output.ts'
import { type ClientOptions, sessionOf } from '../session.ts'

async function logout(options: ClientOptions): Promise<void> {
  const found = findContext(process.env, options.context)
  if (!found || found.name === 'environment') throw new CommandError('Nobody is logged in.', EXIT.DENIED)
  // The session ends at the server too; a server that is gone must not keep the login in the file.
  if (found.context.token)
    await dataOf(sessionOf(found.name, found.context).api.POST('/api/auth/logout')).catch(() => undefined)
  const { [found.name]: _gone, ...contexts } = readContexts(process.env).contexts
  const current = Object.keys(contexts)[0] ?? null
  writeContexts(process.env, { current, contexts })
  show(options, { context: found.name, current }, () => `Logged out of ${found.name}.`)
}

export default defineClientVerb((verb) => {
  verb.description('Ends the login, and forgets the server.').action(logout)
})
