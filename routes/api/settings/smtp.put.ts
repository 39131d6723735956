import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { SmtpChange, SmtpSection } from '#server/settings/schema'

/** The server for outgoing mail. */
export default endpoint({
  summary: 'Change the mail server',
  description:
    'A field that is left out keeps its value; a null host switches mail off. Sends a test mail first, to the caller or to `test_to`; what the mail server refuses is 422 with its answer, and nothing is changed. Holds at once.',
  access: 'admin',
  body: SmtpChange,
  example: {
    host: 'smtp.example.com',
    port: 587,
    security: 'starttls',
    username: 'portreeve',
    password: 'the password',
    from: 'Portreeve <portreeve@example.com>',
  },
  response: data(SmtpSection),
  handler: async ({ actor, body, services }) => ({
    data: await services.settings.changeSmtp(actor, body),
  }),
})
