import { endpoint } from '#server/endpoint'

export default endpoint({
  summary: 'AsyncAPI 3 description of the WebSocket as JSON',
  description:
    'Channels as they are declared and messages as they are read and sent, so that it always matches the running version.',
  access: 'self',
  media_types: ['application/json'],
  handler: async ({ services }) => JSON.stringify(await services.realtime.document()),
})
