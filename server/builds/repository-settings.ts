import * as v from 'valibot'
import { DetectionError, type BuildOverrides, type Explanation, type SourceTree } from './plan.ts'
import type { DeclaredSettings, DetectOptions, SettingValues } from './declared.ts'
import { appJsonSettings, foreignSettings } from './foreign-settings.ts'
import { parseJson } from './text-formats.ts'

const Line = v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(4096))
const Port = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(65_535))

/**
 * `portreeve.json` in the root of a repository: what its authors declare instead of what is detected. Every
 * field is optional.
 */
export const PortreeveJson = v.strictObject({
  /** Ignored; lets editors find a schema. */
  $schema: v.optional(v.string()),
  /** Slug of the stack, e.g. `node`, when the repository fits several. */
  stack: v.optional(v.pipe(v.string(), v.maxLength(40))),
  /** Language version, e.g. `22` or `3.12`; goes before version files. */
  version: v.optional(v.pipe(v.string(), v.maxLength(40))),
  /** Shell line that installs dependencies, in the build container. */
  install_command: v.optional(Line),
  /** Shell line that builds, in the build container. */
  build_command: v.optional(Line),
  /** Shell line that starts the app; it must listen on `$PORT`. */
  start_command: v.optional(Line),
  /** Shell line that runs once in the new image before traffic reaches it, e.g. migrations. */
  release_command: v.optional(Line),
  /** Path of the Dockerfile to use. */
  dockerfile_path: v.optional(v.pipe(v.string(), v.maxLength(400))),
  /** Port the app listens on. */
  port: v.optional(Port),
  /** How readiness is probed: an HTTP path that answers below 400, or a TCP connection. A path alone is the first. */
  health_check: v.optional(
    v.variant('type', [
      v.strictObject({
        type: v.optional(v.literal('http'), 'http'),
        path: v.pipe(v.string(), v.regex(/^\/[^\s#]{0,500}$/)),
      }),
      v.strictObject({ type: v.literal('tcp') }),
    ]),
  ),
  /** Commands that run on a schedule, in the app's image. */
  cron_jobs: v.optional(
    v.pipe(
      v.array(v.strictObject({ schedule: v.pipe(v.string(), v.maxLength(100)), command: Line })),
      v.maxLength(50),
    ),
  ),
})
/** What `portreeve.json` may say. */
export type PortreeveJson = v.InferOutput<typeof PortreeveJson>

/**
 * Everything declared, the first source that has a field wins: the app's settings, `portreeve.json`,
 * `portreeve.yaml`, `Procfile`, `app.json`, files of other platforms.
 */
export function declaredSettings(tree: SourceTree, overrides: DetectOptions): DeclaredSettings {
  const settings: DeclaredSettings = {}
  layer(settings, fromOverrides(overrides), 'app settings')
  layer(settings, fromPortreeveJson(tree), 'portreeve.json')
  const { project_file } = overrides
  if (project_file) layer(settings, project_file.values, project_file.name)
  const processes = procfile(tree)
  layer(
    settings,
    {
      start_command: processes.get('web'),
      release_command: processes.get('release'),
      processes: otherProcesses(processes),
    },
    'Procfile',
  )
  layer(settings, appJsonSettings(tree), 'app.json')
  for (const { source, values } of foreignSettings(tree)) layer(settings, values, source)
  return settings
}

/** What was declared as rows for the user. */
export function declaredExplanations(settings: DeclaredSettings): Explanation[] {
  return Object.entries(settings).map(([field, { value, source }]) => ({
    field,
    value: typeof value === 'object' ? JSON.stringify(value) : String(value),
    source,
  }))
}

/** Names of Procfiles that are run by hand, or once. */
const BY_HAND = new Set(['web', 'release', 'console', 'rake', 'shell', 'migrate', 'test'])
/** A process becomes part of the names of containers. */
const PROCESS_NAME = /^[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?$/

/** Processes that run beside the one that takes requests. */
function otherProcesses(processes: ReadonlyMap<string, string>): Record<string, string> | undefined {
  const others = [...processes].flatMap(([name, command]) => {
    const plain = name.toLowerCase().replaceAll('_', '-')
    return BY_HAND.has(plain) || !PROCESS_NAME.test(plain) ? [] : [[plain, command] as const]
  })
  return others.length > 0 ? Object.fromEntries(others.slice(0, 20)) : undefined
}

/** The processes of a Procfile by name. */
export function procfile(tree: SourceTree): Map<string, string> {
  const processes = new Map<string, string>()
  for (const line of (tree.read('Procfile') ?? '').slice(0, 65_536).split(/\r?\n/)) {
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(colon, 0)).trim()
    const command = line.slice(colon + 1).trim()
    if (
      /^[A-Za-z0-9_-]{1,60}$/.test(name) &&
      command !== '' &&
      command.length <= 4096 &&
      !processes.has(name)
    )
      processes.set(name, command)
  }
  return processes
}

function fromOverrides(overrides: BuildOverrides): Partial<SettingValues> {
  const { stack, install_command, build_command, start_command, release_command, dockerfile_path, port } =
    overrides
  return {
    stack,
    install_command,
    build_command,
    start_command,
    release_command,
    dockerfile_path,
    port,
  }
}

function fromPortreeveJson(tree: SourceTree): Partial<SettingValues> {
  const text = tree.read('portreeve.json')
  if (text === undefined) return {}
  let declared: unknown
  try {
    declared = parseJson(text)
  } catch {
    throw new DetectionError(
      'The file portreeve.json is not valid JSON.',
      'Correct the file, or remove it to let Portreeve detect everything.',
      ['portreeve.json'],
    )
  }
  const result = v.safeParse(PortreeveJson, declared)
  if (result.success) return result.output
  const issue = result.issues[0]
  const path = v.getDotPath(issue)
  const known = Object.keys(PortreeveJson.entries)
    .filter((key) => key !== '$schema')
    .join(', ')
  const hint =
    issue.expected === 'never' ? `Known fields: ${known}.` : `Expected ${issue.expected ?? 'another value'}.`
  throw new DetectionError(`portreeve.json: the field ${path ?? '(whole file)'} is not understood.`, hint, [
    'portreeve.json',
  ])
}

function layer(settings: DeclaredSettings, values: Partial<SettingValues>, source: string): void {
  for (const key of Object.keys(values) as (keyof SettingValues)[]) {
    const value = values[key]
    if (value === undefined || value === '' || settings[key] !== undefined) continue
    Object.assign(settings, { [key]: { value, source } })
  }
}
