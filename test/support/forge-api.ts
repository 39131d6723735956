import type { IncomingMessage, ServerResponse } from 'node:http'

export type ForgeKind = 'github' | 'gitlab' | 'gitea' | 'forgejo' | 'bitbucket'
export interface ApiComment {
  id: number
  text: string
}
export interface ApiStatus {
  sha: string
  state: string
  name: string
}

/** What a route of a forge's API takes, as its documentation tells. */
interface Shape {
  /** Below the root of the API, with `:sha`, `:number` and `:id`. */
  path: string
  method: string
  /** Fields of the body: a list of what they may be, or that they are texts. */
  body?: Record<string, 'text' | readonly string[]>
  act(facts: {
    sha: string
    number: number
    id: number
    body: any
    page: number
  }): [status: number, answer: unknown]
}
interface State {
  comments: ApiComment[]
  statuses: ApiStatus[]
  open: Set<number>
}

const TOKEN = 'token-of-the-forge'
const PATH = 'team/shop'
const next = (state: State) => Math.max(0, ...state.comments.map(({ id }) => id)) + 1

/** Routes about comments, which differ in their paths and in how a comment is written. */
function commentShapes(
  state: State,
  at: { list: string; one: string; edit: 'PATCH' | 'PUT'; size: number },
  form: {
    body: Shape['body']
    read(body: any): string
    show(comment: ApiComment): unknown
    page(all: unknown[]): unknown
  },
): Shape[] {
  return [
    {
      method: 'GET',
      path: at.list,
      act: ({ page }) => [
        200,
        form.page(state.comments.slice((page - 1) * at.size, page * at.size).map(form.show)),
      ],
    },
    {
      method: 'POST',
      path: at.list,
      body: form.body,
      act({ body }) {
        const comment = { id: next(state), text: form.read(body) }
        state.comments.push(comment)
        return [201, form.show(comment)]
      },
    },
    {
      method: at.edit,
      path: at.one,
      body: form.body,
      act({ id, body }) {
        const comment = state.comments.find((one) => one.id === id)
        if (!comment) return [404, { message: 'Not Found' }]
        comment.text = form.read(body)
        return [200, form.show(comment)]
      },
    },
  ]
}

const issueForm = {
  body: { body: 'text' } as const,
  read: (body: { body: string }) => body.body,
  show: ({ id, text }: ApiComment) => ({ id, body: text, user: { login: 'portreeve' } }),
  page: (all: unknown[]) => all,
}
const githubLike = (state: State): Shape[] => [
  {
    method: 'POST',
    path: `/repos/${PATH}/statuses/:sha`,
    body: {
      state: ['error', 'failure', 'pending', 'success'],
      context: 'text',
      description: 'text',
      target_url: 'text',
    },
    act({ sha, body }) {
      state.statuses.push({ sha, state: body.state, name: body.context })
      return [201, { id: 1 }]
    },
  },
  {
    method: 'GET',
    path: `/repos/${PATH}/pulls/:number`,
    act: ({ number }) => [200, { number, state: state.open.has(number) ? 'open' : 'closed' }],
  },
  ...commentShapes(
    state,
    {
      list: `/repos/${PATH}/issues/:number/comments`,
      one: `/repos/${PATH}/issues/comments/:id`,
      edit: 'PATCH',
      size: 50,
    },
    issueForm,
  ),
]

/** The APIs of the forges, each with how it wants to be asked. */
const APIS: Record<
  ForgeKind,
  { root: string; headers: Record<string, string>; shapes(state: State): Shape[] }
> = {
  github: {
    root: '/api/v3',
    headers: { authorization: `Bearer ${TOKEN}`, accept: 'application/vnd.github+json' },
    shapes: githubLike,
  },
  gitea: { root: '/api/v1', headers: { authorization: `token ${TOKEN}` }, shapes: githubLike },
  forgejo: { root: '/api/v1', headers: { authorization: `token ${TOKEN}` }, shapes: githubLike },
  gitlab: {
    root: `/api/v4/projects/${encodeURIComponent(PATH)}`,
    headers: { 'private-token': TOKEN },
    shapes: (state) => [
      {
        method: 'POST',
        path: '/statuses/:sha',
        body: {
          state: ['pending', 'running', 'success', 'failed', 'canceled'],
          name: 'text',
          description: 'text',
          target_url: 'text',
        },
        act({ sha, body }) {
          state.statuses.push({ sha, state: body.state, name: body.name })
          return [201, { id: 1 }]
        },
      },
      {
        method: 'GET',
        path: '/merge_requests/:number',
        act: ({ number }) => [200, { iid: number, state: state.open.has(number) ? 'opened' : 'merged' }],
      },
      ...commentShapes(
        state,
        {
          list: '/merge_requests/:number/notes',
          one: '/merge_requests/:number/notes/:id',
          edit: 'PUT',
          size: 100,
        },
        issueForm,
      ),
    ],
  },
  bitbucket: {
    root: `/2.0/repositories/${PATH}`,
    headers: { authorization: `Bearer ${TOKEN}` },
    shapes: (state) => [
      {
        method: 'POST',
        path: '/commit/:sha/statuses/build',
        body: {
          key: 'text',
          name: 'text',
          state: ['SUCCESSFUL', 'FAILED', 'INPROGRESS', 'STOPPED'],
          description: 'text',
          url: 'text',
        },
        act({ sha, body }) {
          state.statuses.push({ sha, state: body.state, name: body.key })
          return body.key.length > 40 ? [400, { type: 'error' }] : [201, { key: body.key }]
        },
      },
      {
        method: 'GET',
        path: '/pullrequests/:number',
        act: ({ number }) => [200, { id: number, state: state.open.has(number) ? 'OPEN' : 'DECLINED' }],
      },
      ...commentShapes(
        state,
        {
          list: '/pullrequests/:number/comments',
          one: '/pullrequests/:number/comments/:id',
          edit: 'PUT',
          size: 100,
        },
        {
          body: { content: 'text' },
          read: (body: { content: { raw: string } }) => body.content.raw,
          show: ({ id, text }) => ({ id, content: { raw: text }, deleted: false }),
          page: (values) => ({ values, pagelen: 100 }),
        },
      ),
    ],
  },
}

/** Why a body does not have the documented fields; undefined when it has. */
function faultOf(fields: NonNullable<Shape['body']>, body: Record<string, unknown>): string | undefined {
  const extra = Object.keys(body).find((name) => !Object.hasOwn(fields, name))
  if (extra) return `unknown field ${extra}`
  for (const [name, kind] of Object.entries(fields)) {
    const value = name === 'content' ? (body.content as { raw?: unknown } | undefined)?.raw : body[name]
    if (typeof value !== 'string') return `${name} is no text`
    if (kind !== 'text' && !kind.includes(value)) return `${name} is ${value}`
  }
  return undefined
}

/**
 * The part of a forge's API that Portreeve uses. It takes what the documentation of the forge tells and
 * nothing else: what has another path, method, header or field is a fault.
 */
export function createForgeApi(kind: ForgeKind) {
  const state: State = { comments: [], statuses: [], open: new Set() }
  const { root, headers, shapes } = APIS[kind]
  const routes = shapes(state).map((shape) => ({
    ...shape,
    pattern: new RegExp(
      `^${shape.path.replace(/:(sha|number|id)/g, (_, name: string) => `(?<${name}>${name === 'sha' ? '[0-9a-f]{40}' : '\\d+'})`)}$`,
    ),
  }))
  const faults: string[] = []
  const requests: string[] = []

  const answer = (request: IncomingMessage, text: string): [number, unknown] => {
    const { pathname, searchParams } = new URL(request.url!, 'http://forge')
    requests.push(`${request.method} ${pathname}`)
    const fault = (why: string, status = 400): [number, unknown] => {
      faults.push(`${request.method} ${pathname}: ${why}`)
      return [status, { message: why }]
    }
    for (const [name, value] of Object.entries(headers))
      if (request.headers[name] !== value) return fault(`header ${name}`, 401)
    for (const { method, pattern, body: fields, act } of routes) {
      const match = method === request.method && pattern.exec(pathname.slice(root.length))
      if (!match || !pathname.startsWith(root)) continue
      if (fields && request.headers['content-type'] !== 'application/json') return fault('no JSON')
      const body = fields ? JSON.parse(text) : undefined
      const wrong = fields && faultOf(fields, body)
      if (wrong) return fault(wrong)
      const { sha = '', number, id } = match.groups ?? {}
      return act({
        sha,
        number: Number(number),
        id: Number(id),
        body,
        page: Number(searchParams.get('page') ?? 1),
      })
    }
    return fault('no such route', 404)
  }
  return {
    ...state,
    token: TOKEN,
    faults,
    requests,
    /** Answers a request of the API; false for any other. */
    handle(request: IncomingMessage, response: ServerResponse): boolean {
      if (!/^\/(api\/v\d|2\.0)\//.test(request.url ?? '')) return false
      let text = ''
      request.on('data', (chunk: Buffer) => (text += chunk.toString()))
      request.on('end', () => {
        const [status, body] = answer(request, text)
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
      })
      return true
    },
  }
}
export type ForgeApi = ReturnType<typeof createForgeApi>
