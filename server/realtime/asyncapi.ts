import { toJsonSchema } from '@valibot/to-json-schema'
import type * as v from 'valibot'
import { type ErrorCode, ERRORS } from '#server/kernel/errors'
import type { Channel } from '#server/kernel/channels'
import { EVENT_TYPES } from '#server/kernel/event-types'
import { payloadSchema } from '#server/kernel/event-payloads'
import { LogLine } from '#server/runtime-logs/schema'
import { Incoming } from './incoming.ts'

type Json = Record<string, any>
const PATH = '/api/ws'

/** What the server says, by the name of the message. */
const OUTGOING: Readonly<Record<string, { title: string; type: Json; data: Json }>> = {
  event: {
    title: 'Something happened to the resource',
    type: {
      type: 'string',
      enum: Object.keys(EVENT_TYPES),
      description: `What happened: ${Object.entries(EVENT_TYPES)
        .map(([type, text]) => `\`${type}\`: ${text}`)
        .join(' ')}`,
    },
    data: {
      type: 'object',
      required: ['payload', 'created_at'],
      properties: {
        payload: {
          type: 'object',
          description: 'Payload of the event: the schema with the name of its type.',
        },
        created_at: { type: 'string', format: 'date-time', description: 'When it happened.' },
      },
    },
  },
  log: { title: 'A line of a log', type: { const: 'log' }, data: { $ref: '#/components/schemas/LogLine' } },
  output: { title: 'Output of a session', type: { const: 'output' }, data: { type: 'object' } },
  exit: { title: 'The session has ended', type: { const: 'exit' }, data: { type: 'object' } },
  subscribed: {
    title: 'The subscription is open; its cursor says where it begins',
    type: { const: 'subscribed' },
    data: {
      type: 'object',
      description:
        'Without `after` the cursor is that of the newest message: what comes next is new. With it, what came since then follows.',
    },
  },
  unsubscribed: {
    title: 'The subscription has ended',
    type: { const: 'unsubscribed' },
    data: { type: 'object' },
  },
  error: {
    title: 'The request cannot be carried out',
    type: { const: 'error' },
    data: {
      type: 'object',
      required: ['code', 'message'],
      properties: {
        code: {
          type: 'string',
          enum: Object.keys(ERRORS) as ErrorCode[],
          description: 'Stable; branch on this.',
        },
        message: { type: 'string', description: 'For people; names what a message lacks.' },
      },
    },
  },
  pong: { title: 'Answer to a ping', type: { const: 'pong' }, data: { type: 'object' } },
}
/** What is heard on a channel of each kind, beside what every channel says. */
const HEARD = {
  events: ['event'],
  log: ['log'],
  session: ['output', 'exit'],
} as const
const EVERY = ['subscribed', 'unsubscribed', 'error']

const payloadOf = ({ type, data }: { type: Json; data: Json }): Json => ({
  type: 'object',
  required: ['type', 'channel', 'cursor', 'data'],
  properties: {
    type,
    channel: { type: ['string', 'null'], description: 'Name of the channel; null when it is about none.' },
    cursor: {
      type: ['string', 'null'],
      description: 'Give it back as `after` to go on from here; null where there is nothing to go on from.',
    },
    data,
  },
})

const jsonOf = (schema: v.GenericSchema, typeMode: 'input' | 'output'): Json => {
  const { $schema: _dialect, ...json } = toJsonSchema(schema, { errorMode: 'ignore', typeMode })
  return json
}
/** The messages of clients, from the schema that reads them. */
const incoming = (): Record<string, Json> =>
  Object.fromEntries(Incoming.options.map((option) => [option.entries.type.literal, jsonOf(option, 'input')]))
/** What events of each type hold; one message has them all, told apart by its type. */
const payloads = (): Record<string, Json> =>
  Object.fromEntries(Object.keys(EVENT_TYPES).map((type) => [type, jsonOf(payloadSchema(type), 'output')]))
const byType = () => ({
  oneOf: Object.keys(EVENT_TYPES).map((type) => ({
    properties: {
      type: { const: type },
      data: { properties: { payload: { $ref: `#/components/schemas/${type}` } } },
    },
  })),
})
const keyOf = ({ name }: Channel): string => name.replaceAll('/', '_').replaceAll(':', '')
const messageRef = (name: string): Json => ({ $ref: `#/components/messages/${name}` })

/**
 * The AsyncAPI 3 document of the WebSocket: its channels as the modules declare them, its messages as they are
 * read and sent.
 */
export function asyncDocument(
  channels: readonly Channel[],
  facts: { version: string; public_url?: string },
): Json {
  const sent = incoming()
  const described = channels.map((channel) => {
    const heard = [
      ...HEARD[channel.kind],
      ...(channel.kind === 'events' && channel.log ? ['log'] : []),
      ...EVERY,
    ]
    const said = ['subscribe', 'unsubscribe', ...(channel.kind === 'session' ? ['input', 'resize'] : [])]
    return { key: keyOf(channel), channel, heard, said }
  })
  const url = facts.public_url ? new URL(facts.public_url) : undefined
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Portreeve WebSocket',
      version: facts.version,
      description:
        'One connection carries all channels: each message names its own. Prove who you are as for the API, or with a ticket from `POST /api/auth/ws-ticket`.',
    },
    ...(url
      ? { servers: { here: { host: url.host, protocol: url.protocol === 'https:' ? 'wss' : 'ws' } } }
      : {}),
    channels: Object.fromEntries(
      described.map(({ key, channel, heard, said }) => [
        key,
        {
          address: PATH,
          title: channel.name,
          description: `The channel \`${channel.name}\`, for ${channel.access ?? 'viewer'}s and above.`,
          messages: Object.fromEntries([...heard, ...said].map((name) => [name, messageRef(name)])),
        },
      ]),
    ),
    operations: Object.fromEntries(
      described.flatMap(({ key, heard, said }) =>
        (
          [
            ['hear', 'send', heard],
            ['say', 'receive', said],
          ] as const
        ).map(([verb, action, names]) => [
          `${verb}_${key}`,
          {
            action,
            channel: { $ref: `#/channels/${key}` },
            messages: names.map((name) => ({ $ref: `#/channels/${key}/messages/${name}` })),
          },
        ]),
      ),
    ),
    components: {
      schemas: { LogLine: jsonOf(LogLine, 'output'), ...payloads() },
      messages: {
        ...Object.fromEntries(
          Object.entries(OUTGOING).map(([name, one]) => [
            name,
            { name, title: one.title, payload: { ...payloadOf(one), ...(name === 'event' ? byType() : {}) } },
          ]),
        ),
        ...Object.fromEntries(
          Object.entries(sent).map(([name, payload]) => [name, { name, title: `Client: ${name}`, payload }]),
        ),
      },
    },
  }
}
