import { Readable } from 'node:stream'
import * as v from 'valibot'
import type { Actor, PlatformRole, ProjectRole } from '#server/kernel/access'
import { ApiError, conflict } from '#server/kernel/errors'
import { createChanges } from '#server/http/changes'
import { createIdempotency } from '#server/http/idempotency'
import { endpointsOf } from '#server/http/endpoint'
import type { HttpPorts, RequestFacts } from '#server/http/context'
import { data, IdParam, pagingEntries } from '#server/http/schemas'
import { createWatch } from '#server/http/standing'
import { createEntrance, createRequestTurns } from '#server/http/turns'
import { createHeldBytes } from '#server/kernel/held-bytes'
import { SECRET } from '#server/kernel/schemas'
import { createTestKernel } from '#test/support/kernel'
import { type MountedRoute, startTestServer } from '#test/support/http-server'

/** What the tests of the pipeline watch and steer. */
export interface TinyServices extends HttpPorts {
  /** Bodies that reached a handler, in order. */
  handled: unknown[]
  /** Thrown by `POST /api/broken` when set. */
  fault: { error: unknown }
  /** Resolves what `POST /api/slow` waits for. */
  gate: { open(): void; waiting: Promise<void> }
  /** What `GET /api/things/:id/file` answers. */
  file(): Readable | Promise<Readable>
  file_bytes: string | undefined
  /** Ends the right of this caller to be one, and tells of it; or tells only that something is another. */
  revoke(name: string): void
  tell(name: string): void
}

const NewThing = v.strictObject({
  project_id: v.optional(v.string()),
  name: v.pipe(v.string(), v.minLength(1), v.maxLength(10)),
  size: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))),
  tags: v.optional(v.pipe(v.array(v.string()), v.maxLength(2))),
  kind: v.optional(v.picklist(['small', 'large'])),
  nested: v.optional(v.strictObject({ inner: v.array(v.strictObject({ port: v.number() })) })),
})
const Thing = v.object({ id: v.string(), name: v.string() })
const endpoint = endpointsOf<TinyServices>()
const module = (handler: ReturnType<typeof endpoint>) => () => ({ default: handler })

const routes: MountedRoute[] = [
  {
    path: '/api/things',
    method: 'get',
    load: module(
      endpoint({
        summary: 'List',
        access: 'viewer',
        query: v.strictObject({
          ...pagingEntries,
          q: v.optional(v.string()),
          deep: v.optional(v.boolean()),
        }),
        handler: ({ query }) => ({ data: query }),
      }),
    ),
  },
  {
    path: '/api/things',
    method: 'post',
    load: module(
      endpoint({
        summary: 'Create',
        access: 'developer',
        scope: 'body',
        body: NewThing,
        status: 201,
        response: data(Thing),
        handler({ body, services, project_id }) {
          services.handled.push({ ...body, project_id })
          if (body.name === 'taken') throw conflict('That name is taken.')
          return {
            data: {
              id: `thing_${services.handled.length}`,
              name: body.name,
              password_hash: 'must never leave',
            } as v.InferInput<typeof Thing>,
          }
        },
      }),
    ),
  },
  {
    path: '/api/things/:id',
    method: 'get',
    load: module(
      endpoint({
        summary: 'Get',
        access: 'viewer',
        scope: { noun: 'thing' },
        params: IdParam,
        response: data(Thing),
        handler: ({ params }) => ({ data: { id: params.id, name: 'one' } }),
      }),
    ),
  },
  {
    path: '/api/things/:id',
    method: 'put',
    load: module(
      endpoint({
        summary: 'Change',
        access: 'developer',
        scope: { noun: 'thing' },
        params: IdParam,
        body: NewThing,
        response: data(Thing),
        handler({ params, body, services }) {
          services.handled.push(body)
          return { data: { id: params.id, name: body.name } }
        },
      }),
    ),
  },
  {
    path: '/api/things/:id/upload',
    method: 'post',
    load: module(
      endpoint({
        summary: 'Upload',
        access: 'developer',
        scope: { noun: 'thing' },
        params: IdParam,
        upload: { media_types: ['application/gzip'], max_bytes: 1000 },
        async handler({ upload }) {
          let size = 0
          for await (const chunk of upload.stream) size += (chunk as Buffer).length
          return { data: { size } }
        },
      }),
    ),
  },
  {
    path: '/api/things/:id/file',
    method: 'get',
    load: module(
      endpoint({
        summary: 'File',
        access: 'viewer',
        scope: { noun: 'thing' },
        params: IdParam,
        media_types: ['application/octet-stream'],
        handler({ services, response }) {
          if (services.file_bytes) response.header('Content-Length', services.file_bytes)
          response.header('Content-Disposition', 'attachment; filename="file"')
          return services.file()
        },
      }),
    ),
  },
  {
    path: '/api/broken',
    method: 'post',
    load: module(
      endpoint({
        summary: 'Break',
        access: 'self',
        handler({ services }) {
          throw services.fault.error
        },
      }),
    ),
  },
  {
    path: '/api/leaky',
    method: 'get',
    load: module(
      endpoint({
        summary: 'Leak',
        access: 'self',
        response: data(Thing),
        handler: () => ({
          data: { id: 7, name: 'secret-value' } as unknown as v.InferInput<typeof Thing>,
        }),
      }),
    ),
  },
  {
    path: '/api/secrets',
    method: 'post',
    load: module(
      endpoint({
        summary: 'Make a secret',
        access: 'self',
        response: data(v.object({ name: v.string(), key: v.nullable(v.pipe(v.string(), SECRET)) })),
        handler({ services }) {
          services.handled.push('secret')
          return { data: { name: 'one', key: 'shown once' } }
        },
      }),
    ),
  },
  {
    path: '/api/slow',
    method: 'post',
    load: module(
      endpoint({
        summary: 'Wait',
        access: 'self',
        async handler({ services }) {
          services.handled.push('slow')
          await services.gate.waiting
          return { data: 'done' }
        },
      }),
    ),
  },
  {
    path: '/api/text',
    method: 'get',
    load: module(
      endpoint({
        summary: 'Text',
        access: 'self',
        media_types: ['text/plain; charset=utf-8'],
        handler: () => '<script>',
      }),
    ),
  },
  {
    path: '/api/large',
    method: 'get',
    load: module(
      endpoint({
        summary: 'Be large',
        access: 'viewer',
        response: data(v.string()),
        // More than sockets take in by themselves.
        handler: () => ({ data: 'x'.repeat(20 * 1024 * 1024) }),
      }),
    ),
  },
  {
    path: '/api/open',
    method: 'post',
    load: module(
      endpoint({
        summary: 'Open',
        access: 'public',
        body: v.strictObject({ token: v.string() }),
        handler: () => ({ data: 'hello' }),
      }),
    ),
  },
]

function actorOf(name: string, facts: RequestFacts): Actor {
  const roles: Record<string, [PlatformRole, ProjectRole | undefined]> = {
    admin: ['admin', undefined],
    owner: ['member', 'owner'],
    developer: ['member', 'developer'],
    viewer: ['member', 'viewer'],
    outsider: ['member', undefined],
    reader: ['viewer', 'owner'],
  }
  const [role, project] = roles[name] ?? ['viewer', undefined]
  return {
    user_id: `usr_${name}`,
    email: '',
    name,
    role,
    method: 'bearer',
    credential_id: '',
    projects: new Map(project ? [['prj_1', project]] : []),
    scope: 'full',
    address: facts.address,
    request_id: facts.id,
  }
}

/**
 * A small API with every kind of endpoint, served by the real pipeline; callers name themselves as `Bearer
 * <name>`, or `Bearer <name>/<credential>`.
 */
export async function startTinyApi() {
  const kernel = createTestKernel()
  const refused: { code: string; actor: string | undefined; path: string }[] = []
  let open = () => undefined as void
  const ended = new Set<string>()
  const hearing = new Set<(user_id: string) => void>()
  const tell = (name: string) => {
    for (const hear of hearing) hear(`usr_${name}`)
  }
  const services: TinyServices = {
    handled: [],
    fault: { error: new Error('unset') },
    file: () => Readable.from([]),
    file_bytes: '1000000',
    tell,
    revoke(name) {
      ended.add(name)
      tell(name)
    },
    gate: { open: () => open(), waiting: new Promise((resolve) => (open = resolve)) },
    http: {
      log: kernel.log,
      authenticate(credentials, facts) {
        const [, name, credential_id = ''] =
          /^Bearer (\w+)(?:\/(\w+))?$/.exec(credentials.authorization ?? '') ?? []
        if (!name) throw new ApiError('UNAUTHORIZED', 'Log in, or send a valid token or API key.')
        return { ...actorOf(name, facts), credential_id }
      },
      locate: (noun, id) =>
        (noun === 'thing' && id === 'thing_1') || (noun === 'project' && id === 'prj_1')
          ? 'prj_1'
          : undefined,
      cors_origins: () => [],
      default_project: () => 'prj_1',
      idempotency: createIdempotency(kernel.db, kernel.clock, kernel.secrets),
      bodies: createHeldBytes({ of_one: 8 * 1024 * 1024, of_all: 16 * 1024 * 1024, refusal: 'Too many.' }),
      answers: createHeldBytes({ of_one: 16 * 1024 * 1024, of_all: 64 * 1024 * 1024, refusal: 'Too many.' }),
      enter: createEntrance(),
      turn: createRequestTurns(),
      unlocked: () => undefined,
      changes: createChanges(kernel.clock),
      refused: (facts, code, actor) => refused.push({ code, actor: actor?.name, path: facts.path }),
      client: (peer) => ({ address: peer, secure: false }),
      cameByEdge: () => undefined,
      watch: createWatch(kernel.db, kernel.clock),
      refresh(actor) {
        if (ended.has(actor.name)) throw new ApiError('UNAUTHORIZED', 'Log in.')
        return actor
      },
      onRevocation(listener) {
        hearing.add(listener)
        return () => hearing.delete(listener)
      },
    },
  }
  const server = await startTestServer(routes, services)
  return {
    kernel,
    services,
    refused,
    /** How many answers are watched for the end of their caller's right. */
    watched: () => hearing.size,
    ...server,
    async close() {
      await server.close()
      kernel.dispose()
    },
  }
}
export type TinyApi = Awaited<ReturnType<typeof startTinyApi>>
/** Headers of a caller. */
export const by = (name: string, more: Record<string, string> = {}) => ({
  authorization: `Bearer ${name}`,
  ...more,
})
