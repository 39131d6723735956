import { parseDotenv } from '#server/kernel/dotenv'
import { own } from '#server/kernel/own'
import { seemsSecret } from '#server/kernel/secret-names'
import { withoutSecrets } from './compose-secrets.ts'
import { beginsEmpty, readStack } from './stack.ts'

/** What becomes of one thing of the old system. */
export interface Note {
  what: 'taken' | 'changed' | 'refused'
  /** Where it stands there. */
  at: string
  message: string
}
type Fields = Record<string, any>
/** What is moved in: a project file as it is written, values of secrets by app, and what became of everything. */
export interface Moved {
  apps: Record<string, Fields>
  databases: Record<string, Fields>
  volumes: Record<string, Fields>
  secrets: Record<string, Record<string, string>>
  notes: Note[]
}
/** Nothing about what other systems write is trusted. */
export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
export const listOf = (value: unknown): Fields[] => (Array.isArray(value) ? value.filter(isFields) : [])
export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
export const numberOf = (value: unknown): number | undefined => {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) && number > 0 ? number : undefined
}

/** A name as apps and databases here have it. */
export const nameOf = (text: string, longest = 63): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, longest)
    .replace(/-+$/, '') || 'app'

const UNITS: Readonly<Record<string, number>> = { '': 1, b: 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 }
/** `512m`, `512MB`, `536870912`: bytes; undefined for nothing and for no limit. */
export function bytesOf(value: unknown): number | undefined {
  const [, digits, unit = ''] =
    /^(\d+(?:\.\d+)?)\s*([bkmg]?)(?:i?b)?$/i.exec(String(value ?? '').trim()) ?? []
  const bytes = Math.round(Number(digits) * (own(UNITS, unit.toLowerCase()) ?? 1))
  return bytes > 0 ? bytes : undefined
}

/** A folder or file of a repository as it is written here: without the slash that it begins with. */
export const pathOf = (value: unknown): string | undefined =>
  textOf(value)
    ?.replace(/^(?:\.?\/)+/, '')
    .replace(/\/+$/, '') || undefined

/** What is not empty. */
export const compact = (fields: Fields): Fields =>
  Object.fromEntries(
    Object.entries(fields).filter(
      ([, value]) =>
        value !== undefined &&
        value !== null &&
        !(typeof value === 'object' && Object.keys(value).length === 0),
    ),
  )

const textsOf = (environment: Fields): Record<string, string> =>
  Object.fromEntries(Object.entries(environment).map(([key, value]) => [key, String(value ?? '')]))

/** What an engine calls a volume that nobody gave a name. */
const IS_UNNAMED = /^[0-9a-f]{64}$/

export function createMoved(): Moved & {
  note(what: Note['what'], at: string, message: string): void
  /**
   * Adds an app under a free name; answers the name.
   * @param engine_project what the engine of the old server puts before the names of volumes of a compose file.
   */
  addApp(at: string, name: string, fields: Fields, environment: Fields, engine_project?: string): string
  /** Mounts a new volume where an app had one; apps that had the same one get the same. */
  addVolume(at: string, app: string, path: string, old: string, called?: string): void
  addDatabase(at: string, name: string, engine: string, image: unknown): void
  /** Says of a page that asked for a password there, which is told to nobody, that it asks for none here. */
  noteOpenPage(at: string): void
} {
  const moved: Moved = { apps: {}, databases: {}, volumes: {}, secrets: {}, notes: [] }
  const note = (what: Note['what'], at: string, message: string) =>
    void moved.notes.push({ what, at, message })
  /** Names here by the names there. */
  const volumes = new Map<string, string>()
  const free = (name: string, taken: object, longest = 63): string => {
    for (let number = 1; ; number++) {
      const end = `-${number}`
      const one = number === 1 ? name : `${name.slice(0, longest - end.length).replace(/-+$/, '')}${end}`
      if (!Object.hasOwn(taken, one)) return one
    }
  }
  return {
    ...moved,
    note,
    noteOpenPage: (at) =>
      note(
        'refused',
        `${at} password of its page`,
        'is not taken, so that everybody comes in: set basic_auth on its domains before they lead here.',
      ),
    addApp(at, named, fields, environment, engine_project) {
      const name = free(nameOf(named), moved.apps)
      if (typeof fields.compose === 'string') {
        const stack = readStack(fields.compose, textsOf(environment), engine_project ?? named)
        for (const { what, place, message } of stack.notes) note(what, `${at} ${place}`, message)
        if (!stack.is_possible) return name
      }
      if (name !== named) note('changed', at, `is called ${name} here.`)
      const variables: Fields = {}
      const stack =
        typeof fields.compose === 'string' ? withoutSecrets(fields.compose, textsOf(environment)) : undefined
      for (const path of stack?.left ?? [])
        note(
          'refused',
          `${at} ${path}`,
          'looks like a secret and stands in the file in clear, since it refers to a variable that is not known here. Add that to the .env beside the compose file and import again, or move the value by hand before you commit the file.',
        )
      const source = stack ? { ...fields, compose: stack.text } : fields
      for (const { path, name: key } of stack?.moved ?? [])
        note(
          'changed',
          `${at} ${path}`,
          `looks like a secret: it is the variable ${key} of the app, whose value stands in no file that is committed.`,
        )
      for (const [key, given] of Object.entries({ ...environment, ...stack?.secrets })) {
        const value = String(given ?? '')
        if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key) || /^(PORTREEVE_|__proto__$)/.test(key)) {
          note('refused', `${at} ${key}`, 'is no name that a variable can have here.')
          continue
        }
        const secret = own(stack?.secrets, key) !== undefined || seemsSecret(key, value)
        variables[key] = secret ? { secret: true } : { value, secret: false }
        if (secret) moved.secrets[name] = { ...own(moved.secrets, name), [key]: value }
      }
      moved.apps[name] = compact({ ...source, variables })
      note('taken', at, `is the app ${name}.`)
      return name
    },
    addVolume(at, app, path, old, called = old) {
      const known = volumes.get(old)
      const name = known ?? free(nameOf(IS_UNNAMED.test(old) ? `${app}-data` : called), moved.volumes)
      volumes.set(old, name)
      // Who wrote to it together there does so here.
      moved.volumes[name] = known === undefined ? {} : { access: 'shared' }
      const mounting = own(moved.apps, app)!
      mounting.mounts = { ...mounting.mounts, [path]: name }
      note('changed', at, `is the volume ${name} at ${path}. ${beginsEmpty(old)}`)
    },
    addDatabase(at, named, engine, image) {
      const name = free(nameOf(named, 40).replace(/^[^a-z]+/, '') || engine, moved.databases, 40)
      const version = /:v?(\d+)/.exec(String(image ?? ''))?.[1]
      moved.databases[name] = compact({ engine, version })
      note(
        'changed',
        at,
        `is the database ${name}, which begins empty with a password of its own: dump the old one, and load it with POST /api/databases/{id}/restore; then point its apps to it.`,
      )
    },
  }
}
/** Variables of a dotenv text. */
export const environmentOf = (text: unknown): Fields =>
  typeof text === 'string' ? (parseDotenv(text) ?? {}) : {}

/** `https://shop.example.com/path, …` as domains; names that belong to the old server are left out. */
export function domainsOf(texts: readonly string[]): Fields[] {
  return texts.flatMap((text) => {
    const whole = /^https?:\/\//.test(text) ? text : `https://${text}`
    if (!URL.canParse(whole)) return []
    const { hostname, pathname, protocol } = new URL(whole)
    if (/\.(sslip\.io|nip\.io|traefik\.me|localhost)$/.test(hostname)) return []
    return [
      compact({
        hostname,
        ...(pathname === '/' ? {} : { path: pathname.replace(/\/$/, '') }),
        ...(protocol === 'http:' ? { ssl_mode: 'off' } : {}),
      }),
    ]
  })
}
