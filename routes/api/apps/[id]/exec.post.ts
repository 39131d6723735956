import { ExecRequest, ExecResult } from '#server/apps/instances-schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

/** Runs beside the app, never in a serving container, so that it cannot disturb requests. */
export default endpoint({
  summary: 'Run a one-off command in the image and environment of an app',
  description:
    'Starts a fresh container of the live release, runs the command to its end and returns its output and exit code. The container is removed afterwards. It counts toward the quotas of the project while it runs; 4 of one user and 8 in one project run at once.',
  access: 'developer',
  scope: { noun: 'app' },
  params: IdParam,
  body: ExecRequest,
  example: { command: ['node', '--version'] },
  response: data(ExecResult),
  errors: ['CONFLICT', 'RATE_LIMITED', 'ENGINE_UNAVAILABLE'],
  async handler({ actor, params, body, services }) {
    const { runtime } = services.deployments
    const command = await runtime.toldCommand(params.id, body.command)
    services.audit.record(actor, {
      action: 'app.exec',
      resource_type: 'app',
      resource_id: params.id,
      project_id: services.apps.projectOf(params.id) ?? null,
      after: { command },
    })
    return {
      data: await runtime.exec(actor, params.id, body, AbortSignal.timeout((body.timeout_s + 60) * 1000)),
    }
  },
})
