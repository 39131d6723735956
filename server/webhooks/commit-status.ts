import type { CommitState } from './forges/forge.ts'
import { became } from './notices.ts'

/** What a commit status tells of a deployment. */
export interface ReportedDeployment {
  trigger: string
  number: number
  sha: string | null
  git_url: string | null
  app_name: string
  error: string | null
}

const STATES: ReadonlyMap<string, CommitState> = new Map([
  ['deployment.queued', 'pending'],
  ['deployment.building', 'pending'],
  ['deployment.finished', 'success'],
  ['deployment.failed', 'failure'],
  ['deployment.cancelled', 'failure'],
  ['deployment.superseded', 'failure'],
])

/** State of the commit after an event of its deployment; undefined when the event changes nothing of it. */
export const commitStateOf = (type: string): CommitState | undefined => STATES.get(type)

const LONGEST = 140

export function statusDescription(type: string, number: number, error: string | null): string {
  const what = type.split('.')[1]!.replace('finished', 'live')
  const text = `Deployment #${number} ${became(what)}${error ? `: ${error}` : '.'}`
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text
}
