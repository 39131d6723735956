import { isMap, isScalar, isSeq, parseDocument, type Scalar, type YAMLMap, type YAMLSeq } from 'yaml'
import { own } from '#server/kernel/own'
import { isModestYaml } from '#server/kernel/modest-yaml'
import { seemsSecret } from '#server/kernel/secret-names'

const LIMITS = { characters: 1024 * 1024, depth: 32, lines: 10_000, line: 300_000 }
/** `${NAME}` and no default: the value stands elsewhere already. */
const IS_REFERENCE = /^\$(\w+|\{\w+(:?\?[^}]*)?\})$/
const WITH_DEFAULT = /^\$\{(\w+):?-(.+)\}$/s
/** A reference without a default in the place of the password of an address. */
const REFERENCED_PASSWORD = /^[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:\$(\w+|\{\w+\})@/i

/** What a compose file says without its secrets: they are variables of the app, which it refers to. */
export interface WithoutSecrets {
  text: string
  secrets: Record<string, string>
  /** Where each stood. */
  moved: { path: string; name: string }[]
  /** Where one stays in clear, since a part of it is not known here. */
  left: string[]
}

/**
 * What a text of a compose file stands for, by values of a dotenv file and defaults; undefined where a part of it
 * is not known here. A variable of an app is no template: what it refers to would stay as it is written.
 */
function resolved(text: string, known: Readonly<Record<string, string>>): string | undefined {
  let is_known = true
  const plain = text.replace(/\$(\$|\w+|\{[^{}]*\})?/g, (_all, inside: string | undefined) => {
    if (inside === '$') return '$'
    const named = (inside ?? '').replace(/^\{(.*)\}$/s, '$1')
    const [, name = '', operator, fallback] = /^(\w+)(?:(:?-)(.*))?$/s.exec(named) ?? []
    const value = own(known, name)
    const used = operator === ':-' && value === '' ? fallback : (value ?? fallback)
    is_known &&= used !== undefined
    return used ?? ''
  })
  return is_known ? plain : undefined
}

/** Whether a text says anything by itself beside what it refers to. */
const holdsLiteral = (text: string): boolean =>
  /[^\s:/@?&=]/.test(
    text.replace(/^[a-z][a-z0-9+.-]*:\/\//i, '').replace(/\$(\w+|\{\w+(:?\?[^{}]*)?\})/g, ''),
  )

/**
 * Takes the values that look like secrets out of the environment of services. `known` are values of a dotenv file,
 * which count more than a default of the compose file.
 */
export function withoutSecrets(text: string, known: Readonly<Record<string, string>>): WithoutSecrets {
  const found: WithoutSecrets = { text, secrets: {}, moved: [], left: [] }
  const document = isModestYaml(text, LIMITS) ? parseDocument(text, { logLevel: 'silent' }) : undefined
  const services = document?.get('services')
  // What cannot be read is refused by the reader of compose files, with its place.
  if (!document || document.errors.length > 0 || !isMap(services)) return found
  const nameFor = (service: string, key: string, value: string): string => {
    const taken = own(found.secrets, key) ?? own(known, key)
    if (taken === undefined || taken === value) return key
    return `${service.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')}_${key}`
  }
  /** What stands in the place of a value; undefined where it may stay. */
  const reference = (service: string, key: string, value: string, path: string): string | undefined => {
    if (IS_REFERENCE.test(value) || REFERENCED_PASSWORD.test(value) || !seemsSecret(key, value))
      return undefined
    const [, named, fallback] = WITH_DEFAULT.exec(value) ?? []
    if (named !== undefined && own(known, named) !== undefined) return `\${${named}}`
    const plain = resolved(fallback ?? value, known)
    if (plain === undefined) {
      if (holdsLiteral(fallback ?? value)) found.left.push(path)
      return undefined
    }
    const name = named ?? nameFor(service, key, plain)
    found.secrets[name] = plain
    found.moved.push({ path, name })
    return `\${${name}}`
  }
  const inMap = (service: string, map: YAMLMap, path: string) => {
    for (const { key, value } of map.items) {
      if (!isScalar(key) || !isScalar(value) || value.value === null) continue
      const to = reference(service, String(key.value), String(value.value), `${path}.${String(key.value)}`)
      if (to !== undefined) (value as Scalar).value = to
    }
  }
  const inList = (service: string, list: YAMLSeq, path: string) => {
    for (const item of list.items) {
      const [, key, value] = isScalar(item) ? (/^([^=]+)=(.*)$/s.exec(String(item.value)) ?? []) : []
      if (key === undefined || value === undefined || value === '') continue
      const to = reference(service, key, value, `${path}.${key}`)
      if (to !== undefined) (item as Scalar).value = `${key}=${to}`
    }
  }
  for (const { key, value: service } of services.items) {
    const name = String(isScalar(key) ? key.value : key)
    if (!isMap(service)) continue
    for (const section of [['environment'], ['build', 'args']]) {
      const at = service.getIn(section)
      const path = `services.${name}.${section.join('.')}`
      if (isMap(at)) inMap(name, at, path)
      else if (isSeq(at)) inList(name, at, path)
    }
  }
  // A file without secrets stays as it was written, to the letter.
  return found.moved.length === 0 ? found : { ...found, text: document.toString({ lineWidth: 0 }) }
}
