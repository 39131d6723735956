import { DetectedPlan, DetectRequest } from '#server/apps/detection-schema'
import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'

export default endpoint({
  summary: 'Detect the stack of a repository without building it',
  description:
    'Runs the same detection as a deployment and returns the plan, with the reason for every value. A repository that no detector knows is a 422 that says what was looked for. One at a time for each user: a few more wait, the rest are 429.',
  access: 'developer',
  scope: 'body',
  effect: 'deploy',
  body: DetectRequest,
  example: { git_url: 'https://git.example.com/team/shop.git', branch: 'main' },
  response: data(DetectedPlan),
  errors: ['UNAVAILABLE', 'RATE_LIMITED'],
  handler: async ({ actor, project_id, body, services }) => ({
    data: await services.builds.detect(actor, project_id, body),
  }),
})
