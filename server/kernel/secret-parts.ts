import { seemsSecret } from './secret-names.ts'

/** Longer texts are files, whose lines are looked for. */
const LONGEST = 100_000
/** Fields of a document that are gone through. */
const MOST_FIELDS = 2_000
const PASSWORD_IN_ADDRESS = /^[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:([^\s@]+)@/i
/** `password=…` in an address, a form, or a list of settings such as a driver of a database takes. */
const PARAMETER = /(?:^|[?&;\s])([A-Za-z][\w-]{0,63})=(?:'([^']*)'|"([^"]*)"|([^&;\s'"]*))/g
/** What stands behind the scheme of a header `Authorization`. */
const CREDENTIALS = /^(bearer|basic|token|digest|apikey|negotiate) +(\S+)$/i

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function* fieldsOf(document: unknown): Generator<string> {
  let left = MOST_FIELDS
  const open: [key: string, value: unknown][] = [['', document]]
  for (let next = open.pop(); next && left > 0; next = open.pop()) {
    left -= 1
    const [key, value] = next
    if (typeof value === 'string') {
      if (seemsSecret(key, value)) yield value
    } else if (Array.isArray(value)) open.push(...value.map((one): [string, unknown] => [key, one]))
    else if (typeof value === 'object' && value !== null) open.push(...Object.entries(value))
  }
}

function* fieldsOfText(text: string): Generator<string> {
  if (!/^\s*[[{]/.test(text)) return
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    return
  }
  yield* fieldsOf(document)
}

function* credentialsOf(text: string): Generator<string> {
  const [, scheme, credentials] = CREDENTIALS.exec(text) ?? []
  if (!scheme || !credentials) return
  yield credentials
  if (scheme.toLowerCase() !== 'basic') return
  const login = Buffer.from(credentials, 'base64').toString()
  yield login.slice(login.indexOf(':') + 1)
}

/**
 * What is a secret by itself within a secret: the password of an address, of a line of settings, of a document or of a
 * header. A program that reads its address prints the parts of it.
 */
export function* secretPartsOf(secret: string): Generator<string> {
  if (secret.length > LONGEST) return
  const password = PASSWORD_IN_ADDRESS.exec(secret)?.[1]
  if (password !== undefined) yield* [password, decoded(password)]
  for (const [, name, ...values] of secret.matchAll(PARAMETER)) {
    const value = values.find((one) => one !== undefined) ?? ''
    if (seemsSecret(name!, value) || name!.toLowerCase() === 'pwd') yield* [value, decoded(value)]
  }
  yield* credentialsOf(secret)
  yield* fieldsOfText(secret)
}
