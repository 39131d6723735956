import { say } from '../terminal.ts'
import { dataOf } from './api.ts'
import { followDeployment, requireLive } from './follow-deployment.ts'
import { paint, seconds, show } from './output.ts'
import type { ClientOptions, Session } from './session.ts'

/**
 * Shows a deployment to its end, and where the app answers then; fails when it did not get there. With
 * `--no-wait` it only says what was begun.
 */
export async function finishDeployment(
  session: Session,
  id: string,
  options: ClientOptions & { wait: boolean },
): Promise<void> {
  const path = { params: { path: { id } } }
  if (!options.wait) {
    const begun = (await dataOf(session.api.GET('/api/deployments/{id}', path))).data
    return show(
      options,
      begun,
      () => `Deployment #${begun.number} is ${begun.status}. Follow it: portreeve logs --build --follow`,
    )
  }
  const ended = await followDeployment(session, id, { is_quiet: options.json === true })
  if (options.json) show(options, ended, () => '')
  requireLive(ended)
  if (options.json) return
  const app = (await dataOf(session.api.GET('/api/apps/{id}', { params: { path: { id: ended.app_id } } })))
    .data
  const took = ended.timings.live_ms === null ? '' : ` after ${seconds(ended.timings.live_ms)}`
  say(
    `${paint('green', '✓')} Deployment #${ended.number} is live${took}${app.url ? `: ${paint('bold', app.url)}` : '.'}`,
  )
}
