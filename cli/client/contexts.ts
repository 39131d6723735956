import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { isIPv4 } from 'node:net'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { own } from '#server/kernel/own'
import { CommandError } from '../terminal.ts'
import { EXIT } from './exit-codes.ts'

/** One server, and who is logged in there. */
export interface Context {
  url: string
  /** A token of a login, or an API key; one of the two. */
  token?: string
  api_key?: string
  email?: string
}
/** What the credentials file holds. */
export interface Contexts {
  current: string | null
  contexts: Record<string, Context>
}
export type Environment = Record<string, string | undefined>

const OTHERS = 0o077

/** Whether it is a context as we write it: somebody may have edited the file. */
function isContext(found: unknown): boolean {
  const { url, token = '', api_key = '', email = '' } = (found ?? {}) as Record<string, unknown>
  return URL.canParse(String(url)) && [token, api_key, email].every((one) => typeof one === 'string')
}

/** Where credentials are kept: `PORTREEVE_CREDENTIALS`, else below the folder for settings of this user. */
export function credentialsPath(env: Environment): string {
  if (env.PORTREEVE_CREDENTIALS) return env.PORTREEVE_CREDENTIALS
  return join(env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'portreeve', 'credentials.json')
}

/** Reads the file; nothing is known when there is none. Rights of others are taken away. */
export function readContexts(env: Environment): Contexts {
  const path = credentialsPath(env)
  const found = statSync(path, { throwIfNoEntry: false })
  if (!found) return { current: null, contexts: {} }
  if ((found.mode & OTHERS) !== 0 && found.uid === process.getuid?.()) chmodSync(path, 0o600)
  try {
    const { current, contexts } = JSON.parse(readFileSync(path, 'utf8')) as Partial<Contexts>
    if (typeof contexts !== 'object' || contexts === null) throw new Error('no contexts')
    if (!Object.values(contexts).every(isContext)) throw new Error('no context')
    return { current: typeof current === 'string' ? current : null, contexts }
  } catch (cause) {
    throw new CommandError(`${path} cannot be read. Remove it and log in again.`, EXIT.FAILED, { cause })
  }
}

/** Writes the file as a whole, for this user alone. */
export function writeContexts(env: Environment, all: Contexts): void {
  const path = credentialsPath(env)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const partial = `${path}.${process.pid}.partial`
  // Made anew: one that is there has the rights that somebody gave it.
  rmSync(partial, { force: true })
  writeFileSync(partial, `${JSON.stringify(all, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
  renameSync(partial, path)
}

/**
 * The context to use: `PORTREEVE_URL` with a key or token from the environment, else the one that
 * is named by `--context` or `PORTREEVE_CONTEXT`, else the current one. Undefined when nobody has
 * logged in.
 */
export function findContext(
  env: Environment,
  named?: string,
): { name: string; context: Context } | undefined {
  if (named === undefined && env.PORTREEVE_URL) {
    const { PORTREEVE_URL: url } = env
    // Where secrets of a build are kept, a line end often comes along with them.
    const [api_key, token] = [env.PORTREEVE_API_KEY?.trim(), env.PORTREEVE_TOKEN?.trim()]
    return {
      name: 'environment',
      context: { url: serverUrl(url), ...(api_key ? { api_key } : {}), ...(token ? { token } : {}) },
    }
  }
  const all = readContexts(env)
  const name = named ?? (env.PORTREEVE_CONTEXT || all.current)
  if (name === null || name === undefined) return undefined
  const context = own(all.contexts, name)
  if (context) return { name, context }
  const known = Object.keys(all.contexts)
  throw new CommandError(
    `There is no context ${name}. ${known.length > 0 ? `There are: ${known.join(', ')}.` : 'Log in first: portreeve login <address>.'}`,
    EXIT.USAGE,
  )
}

/** Whether a host, with or without a port, is this machine or an address of a private network; a name never is one. */
function isLocal(host: string): boolean {
  const name = host.replace(/(:\d+)?\/?$/, '')
  if (['localhost', '[::1]'].includes(name)) return true
  return isIPv4(name) && /^(127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.)/.test(name)
}

/** The base address of a server, from what people type. Without a scheme a local one is asked by plain HTTP. */
export function serverUrl(text: string): string {
  const typed = /^[a-z]+:\/\//i.test(text) ? text : `${isLocal(text) ? 'http' : 'https'}://${text}`
  try {
    const url = new URL(typed)
    if (!['http:', 'https:'].includes(url.protocol) || url.username !== '' || url.pathname !== '/')
      throw new Error('not an address of a server')
    return url.origin
  } catch (cause) {
    throw new CommandError(
      `${text} is no address of a server. It looks like https://deploy.example.com, without a path.`,
      EXIT.USAGE,
      { cause },
    )
  }
}

/** Whether what is sent there could be read on the way. */
export const isOpenToOthers = (url: string): boolean =>
  new URL(url).protocol === 'http:' && !isLocal(new URL(url).host)
