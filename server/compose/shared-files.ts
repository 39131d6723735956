import type { ServiceContext, Shared } from './context.ts'
import { fileOf } from './environment.ts'
import { own } from '#server/kernel/own'
import { at, type Fields, isFields, type Issues } from './issues.ts'
import type { ComposeMount } from './model.ts'
import { readFields, readNumber, readText } from './values.ts'

interface Source {
  issues: Issues
  files: ServiceContext['files']
  directory: string
  room: ServiceContext['room']
  variables: Readonly<Record<string, string>>
  ask: ServiceContext['ask']
  strict: boolean
}

/** Top-level `configs` or `secrets`: the text of each. */
export function readShared(source: Source, value: unknown, path: 'configs' | 'secrets'): Shared {
  const { issues, variables, strict, ask } = source
  const all = new Map<string, string | undefined>()
  const fields = readFields(issues, value, path) ?? {}
  for (const [name, entry] of Object.entries(fields)) {
    const here = at(path, name)
    const one = readFields(issues, entry, here) ?? {}
    const file = readText(issues, one.file, at(here, 'file'))
    const variable = readText(issues, one.environment, at(here, 'environment'))
    let text = path === 'configs' ? readText(issues, one.content, at(here, 'content')) : undefined
    if (file !== undefined) text = fileOf(source, file, at(here, 'file'))
    else if (variable !== undefined) {
      ask(variable, at(here, 'environment'), true)
      text = own(variables, variable)
      if (text === undefined && strict)
        issues.add(at(here, 'environment'), 'names a variable that is not set. Add it to the app.')
    } else if (text === undefined) issues.add(here, 'needs file, environment or content.')
    all.set(name, text)
  }
  return all
}

/** `configs` and `secrets` of one service as files in its containers. */
export function readSharedMounts(context: ServiceContext, fields: Fields, path: string): ComposeMount[] {
  return [
    ...mountsOf(context, fields.configs, at(path, 'configs'), context.configs, { folder: '/', mode: 0o444 }),
    ...mountsOf(context, fields.secrets, at(path, 'secrets'), context.secrets, {
      folder: '/run/secrets/',
      mode: 0o444,
    }),
  ]
}

function mountsOf(
  { issues, room }: ServiceContext,
  value: unknown,
  path: string,
  shared: Shared,
  usual: { folder: string; mode: number },
): ComposeMount[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) return issues.add(path, 'must be a list.') ?? []
  return value.flatMap((entry, index): ComposeMount[] => {
    const here = at(path, index)
    const fields: Fields = isFields(entry) ? entry : { source: entry }
    const source = readText(issues, fields.source, here)
    if (source === undefined || !shared.has(source)) {
      issues.add(here, 'names nothing that the top level of the file has.')
      return []
    }
    const target = readText(issues, fields.target, at(here, 'target')) ?? source
    const whole = target.startsWith('/') ? target : `${usual.folder}${target}`
    if (/[\0-\x1f]/.test(whole) || whole.endsWith('/') || whole.split('/').includes('..'))
      issues.add(at(here, 'target'), 'must be the path of a file in the container.')
    const mode = modeOf(issues, fields.mode, at(here, 'mode')) ?? usual.mode
    const content = shared.get(source) ?? ''
    if (!room.take('mounts', 1) || !room.take('file_characters', content.length)) return []
    return [{ kind: 'file', path: whole, content, mode }]
  })
}

/** A number as YAML reads `0o440`, or the text `0440`. */
function modeOf(issues: Issues, value: unknown, path: string): number | undefined {
  const octal =
    typeof value === 'string' && /^0o?[0-7]{1,4}$/.test(value)
      ? Number.parseInt(value.replace('o', ''), 8)
      : value
  return readNumber(issues, octal, path, { min: 0, max: 0o777, whole: true })
}
