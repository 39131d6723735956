import { realpathSync } from 'node:fs'
import { isAbsolute, relative } from 'node:path'
import type { ProjectApp, ProjectFile } from '#server/project-file/schema'
import type { DetectOptions, ProjectFileSettings, SettingValues } from './declared.ts'
import { outsidePackages, outsideWarning } from './outside-packages.ts'
import { DetectionError, type HealthCheckPlan } from './plan.ts'
import { openTree } from './source-tree.ts'

const NAMES = ['portreeve.yaml', 'portreeve.yml'] as const

/** The part of the file that is about this app: the one of its name, or the only one. */
function appIn({ apps = {} }: ProjectFile, name: string | undefined): ProjectApp | undefined {
  const all = Object.entries(apps)
  const named = all.find(([each]) => each === name)
  return named?.[1] ?? (all.length === 1 ? all[0]![1] : undefined)
}

function probeOf(check: ProjectApp['health_check']): HealthCheckPlan | undefined {
  if (check?.path) return { type: 'http', path: check.path }
  return check?.type === 'tcp' ? { type: 'tcp' } : undefined
}

/** What is said of an app that a deployment of its own can obey. */
function valuesOf({ build = {}, port, health_check, processes, cron }: ProjectApp): Partial<SettingValues> {
  const { args: _args, ...commands } = build
  const beside = Object.entries(processes ?? {}).flatMap(([name, { command }]) =>
    command === undefined ? [] : [[name, command] as const],
  )
  // One that is switched off there does not run because somebody deploys.
  const jobs = Object.entries(cron ?? {}).flatMap(([name, { expression, command, timezone, enabled }]) =>
    typeof command === 'string' && enabled !== false
      ? [{ schedule: expression, command, name, ...(timezone === undefined ? {} : { timezone }) }]
      : [],
  )
  const values = {
    ...Object.fromEntries(Object.entries(commands).filter(([, value]) => value !== null)),
    port: port ?? undefined,
    health_check: probeOf(health_check),
    processes: beside.length > 0 ? Object.fromEntries(beside) : undefined,
    cron_jobs: jobs.length > 0 ? jobs : undefined,
  }
  return values as Partial<SettingValues>
}

const settingsOf = (name: string, app: ProjectApp): ProjectFileSettings => ({
  name,
  values: valuesOf(app),
  has_web: app.processes?.web?.replicas !== 0,
})

/**
 * Adds what `portreeve.yaml` in the root of the repository says about an app, which lies in `directory`. Throws
 * a DetectionError that says where the file is wrong. Its reader is loaded only where there is a file.
 */
async function withProjectFile(directory: string, options: DetectOptions): Promise<DetectOptions> {
  const tree = await openTree(options.repository ?? directory)
  const name = NAMES.find((each) => tree.read(each) !== undefined)
  if (name === undefined) return options
  const { ProjectFileError, readProjectFile } = await import('#server/project-file/read')
  try {
    const app = appIn(readProjectFile(tree.read(name)!), options.app)
    return app ? { ...options, project_file: settingsOf(name, app) } : options
  } catch (error) {
    if (!(error instanceof ProjectFileError)) throw error
    const [first] = error.faults
    throw new DetectionError(
      `${name} is not right. ${first?.path ? `${first.path}: ` : ''}${first?.message ?? ''}`,
      'Correct the file; portreeve plan says all that is wrong with it.',
      [name],
    )
  }
}

/** Adds what the rest of the repository says about an app that lies in a folder of it. */
export async function withRepository(directory: string, options: DetectOptions): Promise<DetectOptions> {
  const folder = options.repository === undefined ? '' : relative(realpathSync(options.repository), directory)
  const is_below = folder !== '' && !folder.startsWith('..') && !isAbsolute(folder)
  const names = is_below ? outsidePackages(await openTree(options.repository!), folder) : []
  const warnings = names.length === 0 ? [] : [outsideWarning(names, folder)]
  return withProjectFile(directory, { ...options, warnings })
}
