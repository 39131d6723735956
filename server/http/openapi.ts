import { describeReferences } from './openapi-references.ts'
import { own } from '#server/kernel/own'
import type * as v from 'valibot'
import { byStatus, errorCodesOf, errorResponse, errorSchemas, responseName } from './openapi-errors.ts'
import { type DocumentedEndpoint, operationOf } from './openapi-operation.ts'
import { createSchemaConverter, type JsonSchema, refsIn } from './openapi-schemas.ts'
import { createTags } from './openapi-tags.ts'
import type { ApiTag } from '#server/kernel/module'

export interface DocumentFacts {
  /** Version of the product. */
  version: string
  /** Where clients reach this installation; a relative address when it is not configured. */
  public_url?: string
  /** Groups that the modules declare. */
  tags: readonly ApiTag[]
}

const DESCRIPTION = `Portreeve hosts apps on your own servers: give it a Git URL, get a running app with deploys that lose no request.

**Answers** have one envelope: \`{ "data": … }\`, lists add \`total\`, \`page\`, \`per_page\` and \`pages\`, errors are \`{ "error": { "code", "message" } }\`. Branch on \`code\`; messages may change.
**Ids** are opaque texts with a prefix. **Times** are ISO 8601 UTC. **Sizes** are bytes.
**Long work** answers at once with the resource in its starting state and goes on in the background; follow it over \`GET /api/ws\`.
**Idempotency-Key** on POST makes a retry safe: the same key and body within 24 hours return the first answer, unless it held a secret, is larger than 64 KiB, or came after too many others: then it is a 409 that says so.`

/** What an upgrade is refused with. */
const REFUSALS = byStatus([
  'BAD_REQUEST',
  'UNAUTHORIZED',
  'CSRF_INVALID',
  'PASSWORD_CHANGE_REQUIRED',
  'RATE_LIMITED',
  'UNAVAILABLE',
])
const WEBSOCKET: JsonSchema = {
  operationId: 'openWebSocket',
  summary: 'Open the WebSocket',
  description: `Upgrades to a WebSocket. Prove who you are with a bearer token, an API key, the session cookie of the same origin, or \`?ticket=\` from \`POST /api/auth/ws-ticket\`.

Send \`{ "type": "subscribe", "channel": "deployments/dep_…", "after": <cursor> }\` or \`unsubscribe\`; receive \`{ "type", "channel", "cursor", "data" }\`.
Channels: \`apps/:id\`, \`apps/:id/logs\`, \`apps/:id/logs/access\`, \`databases/:id\`, \`databases/:id/logs\`, \`deployments/:id\`, \`projects/:id\`, \`system\`. A client that reconnects with the last \`cursor\` misses nothing.
A connection that is too slow for what it asked for is closed with the code 4408: connect again, and go on from the last cursor.

\`apps/:id/terminal\` and \`databases/:id/terminal\` open a shell in a running instance, for developers and above. The subscription takes \`data\` with \`instance_id\`, \`cols\` and \`rows\`.
Send \`{ "type": "input", "channel", "data": { "text" } }\` and \`{ "type": "resize", "channel", "data": { "cols", "rows" } }\`; receive \`started\` (\`session_id\`, \`instance_id\`, \`process\`, \`index\`), \`output\` (\`text\`), and \`exit\` (\`reason\`, \`exit_code\`), after which the channel is closed.
\`input_taken\` tells how many \`chars\` of all that was typed the program has taken: keep what is under way below 128 KiB, since 256 KiB are held and more is refused. \`unsubscribe\` ends the shell and what it started. There is no cursor: a lost connection ends the terminal.`,
  tags: ['realtime'],
  security: [{ bearerAuth: [] }, { apiKey: [] }, { cookie: [] }, {}],
  parameters: [
    {
      name: 'ticket',
      in: 'query',
      required: false,
      description: 'One-use ticket, for browsers.',
      schema: { type: 'string' },
    },
  ],
  responses: {
    101: { description: 'The connection is a WebSocket now.' },
    ...Object.fromEntries(
      [...REFUSALS].map(([status, codes]) => [
        status,
        { $ref: `#/components/responses/${responseName(codes)}` },
      ]),
    ),
    // Checkers ask for a success beside 101, or for this.
    default: { $ref: '#/components/responses/BAD_REQUEST' },
  },
}

const NOT_MODIFIED: JsonSchema = {
  description: 'The client holds this answer already, by a tag of `If-None-Match`. There is no body.',
  headers: {
    'X-Request-Id': { $ref: '#/components/headers/RequestId' },
    ETag: { $ref: '#/components/headers/ETag' },
  },
}

const SECURITY: JsonSchema = {
  bearerAuth: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'Token from `POST /api/auth/login`.',
  },
  apiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-API-Key',
    description: 'API key from `POST /api/auth/api-keys`.',
  },
  cookie: {
    type: 'apiKey',
    in: 'cookie',
    name: 'session',
    description: 'Cookie that the login sets. Over HTTPS its name is `__Host-session`.',
  },
  csrf: {
    type: 'apiKey',
    in: 'header',
    name: 'X-CSRF-Token',
    description: 'Token from `GET /api/auth/csrf-token`; with the cookie, on requests that change something.',
  },
}

const PARAMETERS: JsonSchema = {
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description:
      'Makes a retry safe: the same key and body within 24 hours return the first answer; another body is a conflict.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
  },
  IfNoneMatch: {
    name: 'If-None-Match',
    in: 'header',
    required: false,
    description: 'Tags of answers that the client holds: where one is still right, the answer is 304.',
    schema: { type: 'string' },
  },
}

const HEADERS: JsonSchema = {
  RequestId: {
    description: 'Names this request in the log of the server.',
    schema: { type: 'string' },
  },
  ETag: {
    description: 'Tag of this answer, for `If-None-Match`.',
    schema: { type: 'string' },
  },
  RetryAfter: {
    description: 'Seconds to wait before trying again.',
    schema: { type: 'integer' },
  },
}

/** The OpenAPI 3.1 document of these endpoints: nothing in it is written twice. */
export function buildDocument(endpoints: readonly DocumentedEndpoint[], facts: DocumentFacts): JsonSchema {
  const sorted = [...endpoints].sort((a, b) => (a.path + a.method < b.path + b.method ? -1 : 1))
  const roots = sorted.flatMap(
    ({ definition }) =>
      [definition.body, definition.response, definition.query, definition.params].filter(
        Boolean,
      ) as v.GenericSchema[],
  )
  const schemas = createSchemaConverter(roots)
  const { tags, tagOf } = createTags(facts.tags)
  const paths: Record<string, JsonSchema> = { '/api/ws': { get: WEBSOCKET } }
  const responses: Record<string, JsonSchema> = Object.fromEntries(
    [...REFUSALS.values()].map((codes) => [responseName(codes), errorResponse(codes)]),
  )
  for (const endpoint of sorted) {
    const path = endpoint.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = {
      ...own(paths, path),
      [endpoint.method]: operationOf(endpoint, schemas, tagOf(endpoint.path)),
    }
    for (const codes of byStatus(errorCodesOf(endpoint.definition, endpoint.method)).values())
      responses[responseName(codes)] ??= errorResponse(codes)
  }
  const used_tags = new Set(
    Object.values(paths).flatMap((item) =>
      Object.values(item).flatMap((operation) => (operation as JsonSchema).tags as string[]),
    ),
  )
  const components = { ...schemas.components(refsIn(paths)), ...errorSchemas() }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Portreeve API',
      version: facts.version,
      description: DESCRIPTION,
      license: { name: 'Proprietary', identifier: 'LicenseRef-Portreeve' },
    },
    servers: [{ url: facts.public_url ?? '/', description: 'This installation.' }],
    tags: tags
      .filter(({ name }) => used_tags.has(name))
      .map(({ name, description }) => ({ name, description })),
    paths: describeReferences(paths, components),
    components: {
      securitySchemes: SECURITY,
      parameters: PARAMETERS,
      headers: HEADERS,
      responses: {
        NOT_MODIFIED,
        ...Object.fromEntries(Object.entries(responses).sort(([a], [b]) => (a < b ? -1 : 1))),
      },
      schemas: describeReferences(components, components),
    },
  }
}
