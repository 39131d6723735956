import { CommandError, say } from '../../terminal.ts'
import { ApiFault, dataOf } from '../api.ts'
import { defineClientVerb } from '../client-verb.ts'
import { type Context, isOpenToOthers, readContexts, serverUrl, writeContexts } from '../contexts.ts'
import { EXIT } from '../exit-codes.ts'
import { paint, show } from '../output.ts'
import { canAsk, prompt, readInput } from '../prompt.ts'
import { type ClientOptions, sessionOf } from '../session.ts'

interface LoginOptions extends ClientOptions {
  name?: string
  email?: string
  totp?: string
  passwordStdin?: boolean
  apiKeyStdin?: boolean
  newPassword?: string
}

/** A token for an e-mail address and a password, with the second factor when the server asks for it. */
async function tokenOf(context: Context, email: string, password: string, totp?: string): Promise<string> {
  const { api } = sessionOf('this server', context)
  const body = { email, password, ...(totp === undefined ? {} : { totp_code: totp }) }
  try {
    return (await dataOf(api.POST('/api/auth/login', { body }))).data.token
  } catch (error) {
    if (!(error instanceof ApiFault) || error.code !== 'TOTP_REQUIRED' || totp !== undefined || !canAsk())
      throw error
    return tokenOf(context, email, password, await prompt('Code of your authenticator app: '))
  }
}

/** The generated first password opens nothing until it is changed. */
async function changeFirstPassword(context: Context, current_password: string): Promise<void> {
  const { api } = sessionOf('this server', context)
  const me = (await dataOf(api.GET('/api/auth/me'))).data
  if (!('password_change_required' in me) || !me.password_change_required) return
  if (!canAsk())
    throw new CommandError(
      'The first password must be changed before anything else. Log in at a terminal, or in the dashboard.',
      EXIT.DENIED,
    )
  process.stderr.write(
    'This is the password of the installation. Choose one of your own, 10 characters or more.\n',
  )
  const new_password = await prompt('New password: ', { secret: true })
  if (new_password !== (await prompt('Once more:    ', { secret: true })))
    throw new CommandError('The two passwords differ; nothing was changed.', EXIT.USAGE)
  await dataOf(api.PUT('/api/auth/password', { body: { current_password, new_password } }))
}

async function byPassword(url: string, options: LoginOptions): Promise<Context> {
  const email = options.email ?? (await prompt('E-mail: ', { instead: ' Give it with --email.' }))
  const password = options.passwordStdin
    ? await readInput()
    : await prompt('Password: ', { secret: true, instead: ' Pipe it to --password-stdin.' })
  const context = { url, email, token: await tokenOf({ url }, email, password, options.totp) }
  await changeFirstPassword(context, password)
  return context
}

async function login(address: string, options: LoginOptions): Promise<void> {
  const url = serverUrl(address)
  if (isOpenToOthers(url))
    process.stderr.write(`${url} is asked without encryption: others on the way can read what is sent.\n`)
  const context: Context = options.apiKeyStdin
    ? { url, api_key: (await readInput()).trim() }
    : await byPassword(url, options)
  const name = options.name ?? new URL(url).host
  const { api } = sessionOf(name, context)
  const me = (await dataOf(api.GET('/api/auth/me'))).data
  const all = readContexts(process.env)
  writeContexts(process.env, {
    current: name,
    contexts: { ...all.contexts, [name]: { ...context, email: me.email } },
  })
  show(
    options,
    { context: name, url, user: me },
    () =>
      `Logged in to ${paint('bold', url)} as ${me.email}${me.role === 'admin' ? ', an administrator' : ''}.`,
  )
  if (!options.json && !canAsk()) say(`The context is called ${name}.`)
}

export default defineClientVerb((verb) => {
  verb
    .description(
      'Logs in to a server and makes it the one that other commands talk to. What proves who you are is kept in a file that only you can read.',
    )
    .argument('<address>', 'address of the server, such as https://deploy.example.com')
    .option('--name <name>', 'what to call this server (default: its host)')
    .option('-e, --email <address>', 'account; asked for when it is missing')
    .option('--totp <code>', 'code of the second factor')
    .option('--password-stdin', 'read the password from standard input')
    .option('--api-key-stdin', 'read an API key from standard input and use it, without a login')
    .action(login)
})
