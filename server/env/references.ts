import { own } from '#server/kernel/own'

/** A value that stands for another: `${{ project.KEY }}` or `${{ <database>.KEY }}`. */
export interface Reference {
  /** `project`, or the name of a database of the project. */
  owner: string
  key: string
}
/** A value in clear, and whether nobody may see it. */
export interface Known {
  value: string
  secret: boolean
}
/** Where references lead. */
export interface ReferenceSources {
  /** A shared variable of the project as it is stored, with references of its own. */
  shared(key: string): Known | undefined
  /** The variables that a database of the project offers. */
  database(name: string): Readonly<Record<string, string>> | undefined
}

/** A reference that leads nowhere or in a circle; the message continues "The value …". */
export class UnresolvedError extends Error {}

/** Variables that one may lead through, and characters that all references together may stand for. */
const MOST_STEPS = 50
const MOST_CHARACTERS = 4_000_000

const MARKED = /\$\{\{([^{}]*)\}\}/g
const REFERENCE = /^([A-Za-z0-9][A-Za-z0-9_-]{0,62})\.([A-Za-z_][A-Za-z0-9_]{0,254})$/

function read(inner: string): Reference {
  const [, owner, key] = REFERENCE.exec(inner.trim()) ?? []
  if (!owner || !key)
    throw new UnresolvedError('has ${{ … }} with something else than project.KEY or <database>.KEY in it.')
  return { owner, key }
}

/** References of a value, each once, in the form `owner.KEY`. */
export const referencesIn = (value: string): string[] => [
  ...new Set(
    [...value.matchAll(MARKED)].map(([, inner]) => {
      const { owner, key } = read(inner!)
      return `${owner}.${key}`
    }),
  ),
]

/**
 * Puts what references stand for in their place. A value that takes in a secret is one itself, and what a
 * database offers always is. Every shared variable is worked out once.
 */
export function createResolver({ shared, database }: ReferenceSources) {
  const done = new Map<string, Known>()
  /** What databases offer: each is asked once, since their rows are sealed. */
  const offers = new Map<string, Readonly<Record<string, string>> | undefined>()
  const open: string[] = []
  let characters = 0

  function sharedValue(key: string): Known {
    const known = done.get(key)
    if (known) return known
    if (open.includes(key))
      throw new UnresolvedError(
        `leads in a circle: ${[...open, key].map((one) => `project.${one}`).join(' → ')}.`,
      )
    const raw = shared(key)
    if (!raw) throw new UnresolvedError(`names project.${key}, which the project does not share.`)
    if (open.length >= MOST_STEPS)
      throw new UnresolvedError(`leads through more than ${MOST_STEPS} variables, one to the next.`)
    open.push(key)
    try {
      const resolved = resolve(raw)
      done.set(key, resolved)
      return resolved
    } finally {
      open.pop()
    }
  }

  function lookup({ owner, key }: Reference): Known {
    if (owner === 'project') return sharedValue(key)
    if (!offers.has(owner)) offers.set(owner, database(owner))
    const offered = offers.get(owner)
    if (!offered)
      throw new UnresolvedError(`names ${owner}.${key}, but the project has no database ${owner}.`)
    if (!Object.hasOwn(offered, key))
      throw new UnresolvedError(
        `names ${owner}.${key}; the database offers ${Object.keys(offered).join(', ') || 'nothing'}.`,
      )
    return { value: own(offered, key)!, secret: true }
  }

  function resolve({ value, secret }: Known): Known {
    let is_secret = secret
    const text = value.replace(MARKED, (_all, inner: string) => {
      const known = lookup(read(inner))
      is_secret ||= known.secret
      // A few variables that each name another one some times are more than any memory holds.
      characters += known.value.length
      if (characters > MOST_CHARACTERS)
        throw new UnresolvedError('stands for more than 4 MB, together with others.')
      return known.value
    })
    return { value: text, secret: is_secret }
  }
  return resolve
}
