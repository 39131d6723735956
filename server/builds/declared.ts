import type { BuildOverrides, CronJobPlan, HealthCheckPlan } from './plan.ts'

/** The value of one field and where it was declared. */
export interface Declared<T> {
  value: T
  source: string
}

/** What user and repository declare, each field with its source. What is missing is detected. */
export interface DeclaredSettings {
  stack?: Declared<string>
  version?: Declared<string>
  install_command?: Declared<string>
  build_command?: Declared<string>
  start_command?: Declared<string>
  release_command?: Declared<string>
  dockerfile_path?: Declared<string>
  port?: Declared<number>
  health_check?: Declared<HealthCheckPlan>
  processes?: Declared<Record<string, string>>
  cron_jobs?: Declared<CronJobPlan[]>
}

/** Stands among the commands of Nixpacks and Railpack for those that are detected. */
export const DETECTED = '...'

/** A declared command with what is detected in the first place that it has for it. */
export function withDetected(declared: string | undefined, detected: string | null): string | null {
  if (declared === undefined) return detected
  const lines = declared.split(' && ')
  const place = lines.indexOf(DETECTED)
  return lines
    .flatMap((line, at) => (line === DETECTED ? ((at === place ? detected : null) ?? []) : line))
    .join(' && ')
}

/** Fields of one source, before the sources are put on top of each other. */
export type SettingValues = {
  [Key in keyof DeclaredSettings]: NonNullable<DeclaredSettings[Key]>['value'] | undefined
}

/** What the file of a project says about one app. */
export interface ProjectFileSettings {
  /** Name of the file. */
  name: string
  values: Partial<SettingValues>
  /** Whether something takes requests beside the processes that it names. */
  has_web: boolean
}

/**
 * What a caller may declare: the app's settings, and the names of build arguments that generated Dockerfiles
 * must accept.
 */
export interface DetectOptions extends BuildOverrides {
  build_args?: readonly string[]
  /** Whether a file with secret build variables is mounted while commands run; see `SECRETS_FILE`. */
  build_secrets?: boolean
  /** Name of the app, by which it is found in the file of a project. */
  app?: string
  /** Root of the repository, when the app lies in a folder of it. */
  repository?: string
  /** What else its author should hear of, by the rest of the repository. */
  warnings?: readonly string[]
  /** What the file of the project says about the app. */
  project_file?: ProjectFileSettings
}
