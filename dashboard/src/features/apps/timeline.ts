/** What the timeline of an app needs to know of an event. */
interface TimelineEvent {
  type: string
  deployment_id?: string | null
  payload: Record<string, unknown>
}

/**
 * Events of an app, newest first, with one for each step of a deployment: its beginning is left out once its
 * outcome is told. On a later page the outcome of a step that begins there is on the page before.
 */
export function foldSteps<Row extends TimelineEvent>(rows: readonly Row[], page: number): Row[] {
  const told = new Set<string>()
  return rows.filter(({ type, deployment_id, payload }) => {
    if (type !== 'deployment.step' || typeof payload.step !== 'string') return true
    if (page > 1 && payload.step_status === 'running') return false
    const key = `${deployment_id} ${payload.step}`
    const is_new = !told.has(key)
    told.add(key)
    return is_new
  })
}
