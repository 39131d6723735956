import type { HealthCheckPlan } from './plan.ts'

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
  cron_jobs?: Declared<{ schedule: string; command: string }[]>
}

/** Fields of one source, before the sources are put on top of each other. */
export type SettingValues = {
  [Key in keyof DeclaredSettings]: NonNullable<DeclaredSettings[Key]>['value'] | undefined
}
