/** Services of compose apps as apps and deployments see them. */
export interface ServicesOfStacks {
  /** Names that the services of an app have; with `only`, others of it go. */
  keep(app_id: string, project_id: string, names: readonly string[], only: boolean): void
  /** Services that somebody has stopped. */
  stopped(app_id: string): ReadonlySet<string>
  /** A deployment or a start of the app has started all of them. */
  started(app_id: string): void
  /** A value for a variable that the platform makes up; undefined for any other name. */
  generate(name: string): { value: string; secret: boolean } | undefined
}
