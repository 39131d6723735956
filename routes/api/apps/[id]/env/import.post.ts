import { endpoint } from '#server/endpoint'
import { VariableImport, VariableReport } from '#server/env/schema'
import { data, IdParam } from '#server/http/schemas'

/** One bad line, and nothing is applied. */
export default endpoint({
  summary: 'Import many variables of an app at once',
  description:
    'From the text of a dotenv file or from an object. A text is read as the package dotenv reads it; a line that is no assignment, an open quote and a key that is there twice are refused with 422, which names each line, and then nothing is applied. Keys that exist keep their comment, and whether they are secret, unless `secret`, `scopes` or `details` say otherwise.',
  access: 'developer',
  scope: { noun: 'app' },
  params: IdParam,
  body: VariableImport,
  example: { text: 'STRIPE_MODE=live\nGREETING="Good morning" # for people\n', mode: 'merge' },
  response: data(VariableReport),
  errors: ['CONFLICT', 'PRECONDITION_FAILED'],
  handler: async ({ actor, params, body, services }) => ({
    data: await services.env.importMany(actor, params.id, body),
  }),
})
