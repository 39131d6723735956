import { own } from '#server/kernel/own'
import { at, type Fields, isFields, type Issues } from './issues.ts'

/** A variable that a compose file asks for. */
export interface VariableUse {
  name: string
  /** Text that stands in when it is not set; null without one. */
  default: string | null
  /** Whether the file says that it cannot do without (`${NAME:?message}`). */
  required: boolean
  /** Dotted paths of the values that use it. */
  paths: string[]
}

const MAX_NODES = 20_000
const MAX_DEPTH = 64
/** Variables that a file may ask for: each is kept with the deployment, and made up where it is missing. */
const MAX_USES = 1000
/** Characters that all values together may have; a variable that is used often must not fill the memory. */
const MAX_CHARACTERS = 2 * 1024 * 1024
const NAME = /[A-Za-z_][A-Za-z0-9_]*/y
const OPERATOR = /:?[-?+]/y

/** Names of variables that are not set and that nothing stands in for, by the path of the value that they leave open. */
export type OpenValues = ReadonlyMap<string, ReadonlySet<string>>

export interface Interpolation {
  variables: Readonly<Record<string, string>>
  issues: Issues
  /** Whether a required variable that is not set is an issue: not while somebody only looks at a plan. */
  strict: boolean
}

/** Puts variables into the values of a parsed file and tells which were used. Keys and `x-` fields stay. */
export function interpolate(
  tree: unknown,
  options: Interpolation,
): { tree: unknown; uses: VariableUse[]; open: OpenValues } {
  const uses = new Map<string, VariableUse>()
  const open = new Map<string, Set<string>>()
  const room = { characters: MAX_CHARACTERS }
  let nodes = 0
  const walk = (value: unknown, path: string, depth: number): unknown => {
    if (++nodes > MAX_NODES || depth > MAX_DEPTH || room.characters < 0) {
      options.issues.add('', 'The file has too many values, or they are nested too deeply.')
      return undefined
    }
    if (typeof value === 'string') {
      room.characters -= value.length
      return value.includes('$') ? new Text(value, path, { ...options, room, open }, uses).whole() : value
    }
    if (Array.isArray(value)) return value.map((item, index) => walk(item, at(path, index), depth + 1))
    if (!isFields(value)) return value
    const copy: Fields = Object.create(null) as Fields
    for (const [key, one] of Object.entries(value)) {
      const extension = path === '' && key.startsWith('x-')
      copy[key] = extension ? one : walk(one, at(path, key), depth + 1)
    }
    return copy
  }
  return { tree: walk(tree, '', 0), uses: [...uses.values()], open }
}

interface TextOptions extends Interpolation {
  /** Characters that are left for all values of the file. */
  room: { characters: number }
  open: Map<string, Set<string>>
}

/** One text with its variables; forms may be nested: `${A:-${B:-c}}`. */
class Text {
  readonly #text: string
  readonly #path: string
  readonly #options: TextOptions
  readonly #uses: Map<string, VariableUse>
  #at = 0
  #depth = 0
  #failed = false

  constructor(text: string, path: string, options: TextOptions, uses: Map<string, VariableUse>) {
    this.#text = text
    this.#path = path
    this.#options = options
    this.#uses = uses
  }

  whole(): string {
    const value = this.#until(undefined, true)
    return this.#failed ? '' : value
  }

  /** Reads up to `end`; `live` says whether what is read is used, so that it may ask for variables. */
  #until(end: '}' | undefined, live: boolean): string {
    let out = ''
    while (this.#at < this.#text.length && !this.#failed) {
      const character = this.#text[this.#at]!
      if (character === end) return out
      if (character === '$') {
        const value = this.#variable(live)
        // Before it is added: one line of names would otherwise make gigabytes of a long variable.
        this.#options.room.characters -= value.length
        if (this.#options.room.characters < 0) return this.#fail('is too long with its variables.')
        out += value
      } else {
        out += character
        this.#at++
      }
    }
    return end && !this.#failed ? this.#fail('has ${ without }.') : out
  }

  #variable(live: boolean): string {
    const next = this.#text[++this.#at]
    if (next === '$') {
      this.#at++
      return '$'
    }
    if (next !== '{') {
      const name = this.#match(NAME)
      return name
        ? this.#value(name, '', () => '', live)
        : this.#fail('has a $ that begins no variable; write $$ for a dollar.')
    }
    this.#at++
    const name = this.#match(NAME)
    if (!name) return this.#fail('has ${ without the name of a variable; write $$ for a dollar.')
    const operator = this.#match(OPERATOR) ?? ''
    if (++this.#depth > 16) return this.#fail('nests variables too deeply.')
    const value = this.#value(name, operator, (used) => this.#until('}', used), live)
    this.#depth--
    if (this.#failed) return ''
    if (this.#text[this.#at] !== '}') return this.#fail('has a form of ${…} that Compose does not know.')
    this.#at++
    return value
  }

  /** The value of one variable; `word` reads what follows the operator. */
  #value(name: string, operator: string, word: (used: boolean) => string, live: boolean): string {
    const value = own(this.#options.variables, name)
    const set = value !== undefined && (value !== '' || !operator.startsWith(':'))
    const kind = operator.at(-1)
    if (kind === '+') {
      const other = word(live && set)
      if (live) this.#note(name, null, false)
      return set ? other : ''
    }
    const text = kind ? word(live && !set && kind === '-') : ''
    if (live) this.#note(name, kind === '-' ? text : null, kind === '?')
    if (set) return value
    if (kind === '-') return text
    if (live && value === undefined) this.#leaveOpen(name)
    if (kind === '?' && live && this.#options.strict)
      this.#options.issues.add(this.#path, `needs the variable ${name}, which is not set. Add it to the app.`)
    return value ?? ''
  }

  #leaveOpen(name: string): void {
    const names = this.#options.open.get(this.#path) ?? new Set<string>()
    this.#options.open.set(this.#path, names.add(name))
  }

  #note(name: string, fallback: string | null, required: boolean): void {
    if (this.#uses.size >= MAX_USES && !this.#uses.has(name))
      return void this.#options.issues.add('', `The file asks for more than ${MAX_USES} variables.`)
    const use = this.#uses.get(name) ?? { name, default: null, required: false, paths: [] }
    this.#uses.set(name, use)
    use.default ??= fallback
    use.required ||= required
    if (!use.paths.includes(this.#path) && use.paths.length < 20) use.paths.push(this.#path)
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    this.#at += found?.length ?? 0
    return found
  }

  #fail(message: string): string {
    this.#failed = true
    this.#options.issues.add(this.#path, message)
    return ''
  }
}
