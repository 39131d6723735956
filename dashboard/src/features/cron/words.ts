import type { CronJob } from './queries.ts'

/** Times that most jobs run at, in the words of a form. */
export const TIMES = [
  { value: '*/15 * * * *', label: 'Every 15 minutes' },
  { value: '@hourly', label: 'Every hour' },
  { value: '0 3 * * *', label: 'Every night at three' },
  { value: '0 9 * * 1-5', label: 'Every weekday at nine' },
  { value: '0 3 * * 0', label: 'Every Sunday at three' },
  { value: '', label: 'At other times' },
]
export const OVERLAPS = [
  { value: 'forbid', label: 'Skip the new run' },
  { value: 'allow', label: 'Let both run' },
  { value: 'replace', label: 'End the older run' },
]
export const CATCH_UPS = [
  { value: 'none', label: 'Leave them out' },
  { value: 'once', label: 'Run once for all of them' },
]

/** What a job does, in one line. */
export const whatOf = ({ command, http }: CronJob): string =>
  http ? `${http.method} ${http.url}` : [command ?? ''].flat().join(' ')
