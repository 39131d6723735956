import { at, isFields, type Fields, type Issues } from './issues.ts'
import { type ComposeDependency, type ComposeService, CONDITIONS } from './model.ts'
import { readBoolean, readText, readTexts } from './values.ts'

interface Wanted extends ComposeDependency {
  required: boolean
}

/** `depends_on` of one service: a list, or a mapping with conditions. */
export function readDependencies(issues: Issues, value: unknown, path: string): Wanted[] {
  if (value === undefined || value === null) return []
  if (!isFields(value))
    return readTexts(issues, value, path).map((service) => ({
      service,
      condition: 'service_started',
      required: true,
    }))
  return Object.entries(value).map(([service, entry]) => {
    const here = at(path, service)
    const fields: Fields = isFields(entry) ? entry : {}
    const text = readText(issues, fields.condition, at(here, 'condition')) ?? 'service_started'
    const condition = CONDITIONS.find((known) => known === text)
    if (!condition) issues.add(at(here, 'condition'), `must be one of ${CONDITIONS.join(', ')}.`)
    return {
      service,
      condition: condition ?? 'service_started',
      required: readBoolean(issues, fields.required, at(here, 'required')) ?? true,
    }
  })
}

/** The dependencies that the file has; one that it lacks is an issue unless the file can do without. */
export function settleDependencies(
  issues: Issues,
  desired: readonly Wanted[],
  known: { active: ReadonlySet<string>; left_out: ReadonlySet<string> },
  path: string,
): ComposeDependency[] {
  return desired.flatMap(({ service, condition, required }) => {
    if (known.active.has(service)) return [{ service, condition }]
    if (required)
      issues.add(
        path,
        known.left_out.has(service)
          ? 'names a service whose profile is not active.'
          : 'names a service that is not in the file.',
      )
    return []
  })
}

/** Each service after those that it depends on; otherwise in the order of the file. */
export function inOrder(issues: Issues, services: readonly ComposeService[]): ComposeService[] {
  const done = new Set<string>()
  const left = [...services]
  const ordered: ComposeService[] = []
  while (left.length > 0) {
    const next = left.findIndex(({ depends_on }) => depends_on.every(({ service }) => done.has(service)))
    if (next < 0) {
      const [first] = left
      issues.add(at(at('services', first!.name), 'depends_on'), 'leads in a circle.')
      return ordered
    }
    const [service] = left.splice(next, 1) as [ComposeService]
    done.add(service.name)
    ordered.push(service)
  }
  return ordered
}
