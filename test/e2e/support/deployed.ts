import { expect } from 'vitest'
import type { Portreeve } from '#test/support/portreeve'

async function why(portreeve: Portreeve, app: { latest_deployment: { id: string } | null }): Promise<string> {
  const { body } = await portreeve.call('GET', `/api/deployments/${app.latest_deployment?.id}`)
  const log = await portreeve.call('GET', `/api/deployments/${app.latest_deployment?.id}/logs`)
  return JSON.stringify({ error: body.data?.error, log: log.body.data?.slice(-20) }, null, 1)
}

/**
 * Creates an app, waits until its first deployment has ended, and expects it to run; else the failure tells
 * the log.
 */
export async function deployed(portreeve: Portreeve, body: { name: string } & Record<string, unknown>) {
  const created = await portreeve.call('POST', '/api/apps', { soak_seconds: 0, ...body })
  expect(created.status, JSON.stringify(created.body)).toBe(201)
  const app = await portreeve.untilApp(created.body.data.id, ['running', 'failed'])
  if (app.latest_deployment) await portreeve.untilDeployment(app.latest_deployment.id)
  expect(app.status, await why(portreeve, app)).toBe('running')
  return app
}

/** Deploys an app and waits until the deployment has ended; answers it. */
export async function redeployed(portreeve: Portreeve, id: string, body: Record<string, unknown> = {}) {
  const answer = await portreeve.call('POST', `/api/apps/${id}/deploy`, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(201)
  return portreeve.untilDeployment(answer.body.data.id)
}
