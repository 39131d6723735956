import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import { createInterface } from 'node:readline'

export type Ask = (
  method: string,
  path: string,
  options?: { headers?: Record<string, string>; body?: string },
) => Promise<{ status: number; headers: IncomingHttpHeaders; body: string }>

/** How a stack is used by its client; a mark is anything that the client finds again. */
interface Used {
  /** What is done once, such as an installer. */
  begin?(): Promise<void>
  write(mark: string): Promise<void>
  shows(mark: string): Promise<boolean>
}
/** A connection to a port of the stack's container, which other apps of its project have. */
export type Dial = (port: number) => Promise<Socket>
interface Stack {
  /** `credentials` are those that the platform shows of its services. */
  use(requested: Ask, credentials: Record<string, string>, dial: Dial): Used
}

const MEASURED_S = 2
const JSON_TYPE = { 'content-type': 'application/json' }
const FORM_TYPE = { 'content-type': 'application/x-www-form-urlencoded' }
const form = (fields: Record<string, string>) => new URLSearchParams(fields).toString()

/** Throws unless the answer is a good one, with what it says. */
async function good(asked: ReturnType<Ask>): ReturnType<Ask> {
  const answer = await asked
  if (answer.status >= 400) throw new Error(`${answer.status}: ${answer.body.slice(0, 300)}`)
  return answer
}
const miniflux: Stack = {
  use(ask, { ADMIN_PASSWORD }) {
    const login = Buffer.from(`admin:${ADMIN_PASSWORD}`).toString('base64')
    const headers = { ...JSON_TYPE, authorization: `Basic ${login}` }
    return {
      write: async (title) =>
        void (await good(ask('POST', '/v1/categories', { headers, body: JSON.stringify({ title }) }))),
      shows: async (title) =>
        (await good(ask('GET', '/v1/categories', { headers }))).body.includes(`"${title}"`),
    }
  },
}

const wordpress: Stack = {
  use(ask, { DB_PASSWORD }) {
    const password = `of-${DB_PASSWORD}`
    return {
      async begin() {
        const fields = { weblog_title: 'Ships', user_name: 'ada', admin_email: 'ada@example.test' }
        const body = form({
          ...fields,
          admin_password: password,
          admin_password2: password,
          blog_public: '0',
        })
        await good(ask('POST', '/wp-admin/install.php?step=2', { headers: FORM_TYPE, body }))
      },
      async write(title) {
        const value = (text: string) => `<param><value><string>${text}</string></value></param>`
        const member = (name: string, text: string) =>
          `<member><name>${name}</name><value><string>${text}</string></value></member>`
        const post = `${member('post_title', title)}${member('post_status', 'publish')}`
        const body = `<methodCall><methodName>wp.newPost</methodName><params><param><value><int>1</int></value></param>${value('ada')}${value(password)}<param><value><struct>${post}</struct></value></param></params></methodCall>`
        const answer = await good(
          ask('POST', '/xmlrpc.php', { headers: { 'content-type': 'text/xml' }, body }),
        )
        if (answer.body.includes('<fault>')) throw new Error(answer.body)
      },
      shows: async (title) =>
        (await good(ask('GET', '/?rest_route=/wp/v2/posts'))).body.includes(`"rendered":"${title}"`),
    }
  },
}

const node_red: Stack = {
  use: (ask) => ({
    write: async (label) => {
      const body = JSON.stringify({ label, nodes: [] })
      await good(ask('POST', '/flow', { headers: JSON_TYPE, body }))
    },
    shows: async (label) => (await good(ask('GET', '/flows'))).body.includes(`"${label}"`),
  }),
}

const dokuwiki: Stack = {
  use: (ask) => ({
    write: async (id) => {
      const body = form({ id, do: 'save', wikitext: `This is ${id}.`, 'do[save]': '1' })
      await good(ask('POST', '/doku.php', { headers: FORM_TYPE, body }))
    },
    shows: async (id) => {
      const { status, body } = await ask('GET', `/doku.php?id=${id}&do=export_raw`)
      return status === 200 && body.includes(`This is ${id}.`)
    },
  }),
}

const registry: Stack = {
  use: (ask) => ({
    async write(name) {
      const digest = `sha256:${createHash('sha256').update(name).digest('hex')}`
      const { headers } = await good(ask('POST', `/v2/${name}/blobs/uploads/`))
      const { pathname, search } = new URL(headers.location!, 'http://registry')
      const path = `${pathname}${search}&digest=${encodeURIComponent(digest)}`
      await good(ask('PUT', path, { headers: { 'content-type': 'application/octet-stream' }, body: name }))
    },
    shows: async (name) => (await good(ask('GET', '/v2/_catalog'))).body.includes(`"${name}"`),
  }),
}

const syncthing: Stack = {
  use(ask) {
    /** The page hands out what its own requests have to carry. */
    const own = async () => {
      const { headers } = await good(ask('GET', '/'))
      const cookie = String(headers['set-cookie']).split(';')[0]!
      const [name, token] = cookie.split('=') as [string, string]
      return { cookie, [`x-${name}`]: token, ...JSON_TYPE }
    }
    return {
      write: async (id) => {
        const body = JSON.stringify({ id, path: `/var/syncthing/${id}` })
        await good(ask('POST', '/rest/config/folders', { headers: await own(), body }))
      },
      shows: async (id) =>
        (await good(ask('GET', '/rest/config/folders', { headers: await own() }))).body.includes(`"${id}"`),
    }
  },
}

const verdaccio: Stack = {
  use(requested, _credentials) {
    let token = ''
    return {
      async begin() {
        const body = JSON.stringify({ name: 'ada', password: 'of ships and lights' })
        const path = '/-/user/org.couchdb.user:ada'
        const answer = await good(requested('PUT', path, { headers: JSON_TYPE, body }))
        token = JSON.parse(answer.body).token
      },
      async write(name) {
        const whole = `@ships/${name}`
        const file = `${name}-1.0.0.tgz`
        const data = Buffer.from(name).toString('base64')
        const body = JSON.stringify({
          ...{ _id: whole, name: whole, 'dist-tags': { latest: '1.0.0' } },
          versions: { '1.0.0': { name: whole, version: '1.0.0', dist: { tarball: `http://here/${file}` } } },
          _attachments: { [file]: { content_type: 'application/octet-stream', data, length: name.length } },
        })
        const headers = { ...JSON_TYPE, authorization: `Bearer ${token}` }
        await good(requested('PUT', `/@ships%2f${name}`, { headers, body }))
      },
      shows: async (name) => (await requested('GET', `/@ships/${name}/-/${name}-1.0.0.tgz`)).body === name,
    }
  },
}

const victoriametrics: Stack = {
  use: (ask) => ({
    write: async (mark) => {
      await good(ask('POST', '/api/v1/import/prometheus', { body: `ship{mark="${mark}"} 1\n` }))
      // What was not yet written to the disk is not in a copy of it: a snapshot writes it.
      await good(ask('GET', '/snapshot/create'))
      await good(ask('GET', '/snapshot/delete_all'))
    },
    shows: async (mark) => {
      const match = encodeURIComponent(`ship{mark="${mark}"}`)
      return (await good(ask('GET', `/api/v1/export?match%5B%5D=${match}`))).body.includes(`"${mark}"`)
    },
  }),
}

/** Prometheus takes nothing from clients: a mark is seconds in which it has measured itself. */
const prometheus: Stack = {
  use(ask) {
    const ends = new Map<string, number>()
    return {
      write: async (mark) => void ends.set(mark, Date.now() / 1000 + MEASURED_S),
      async shows(mark) {
        const time = ends.get(mark) ?? 0
        if (Date.now() / 1000 < time) return false
        const query = encodeURIComponent(`count_over_time(up{job="prometheus"}[${MEASURED_S}s])`)
        const path = `/api/v1/query?query=${query}&time=${time}`
        return (await good(ask('GET', path))).body.includes('"job":"prometheus"')
      },
    }
  },
}

/** Publishes to a stream and asks for the last message, over the protocol that clients speak. */
const nats: Stack = {
  use(_ask, { ADMIN_PASSWORD }, dial) {
    /** What the server answers to a request on this subject. */
    const request = async (subject: string, payload: string) => {
      const socket = await dial(4222)
      try {
        const login = JSON.stringify({ verbose: false, user: 'admin', pass: ADMIN_PASSWORD })
        const words = `CONNECT ${login}\r\nSUB answers 1\r\nPUB ${subject} answers ${payload.length}\r\n${payload}\r\n`
        socket.write(words)
        for await (const line of createInterface(socket)) {
          if (line.startsWith('-ERR')) throw new Error(line)
          if (line.startsWith('{')) return line
        }
        throw new Error('The server closed the connection.')
      } finally {
        socket.destroy()
      }
    }
    return {
      async begin() {
        const stream = JSON.stringify({
          name: 'ships',
          subjects: ['ships.*'],
          storage: 'file',
          num_replicas: 1,
        })
        await request('$JS.API.STREAM.CREATE.ships', stream)
      },
      async write(mark) {
        const answer = await request(`ships.${mark}`, mark)
        if (!answer.includes('"seq"')) throw new Error(answer)
      },
      shows: async (mark) =>
        (
          await request('$JS.API.STREAM.MSG.GET.ships', JSON.stringify({ last_by_subj: `ships.${mark}` }))
        ).includes(`"subject":"ships.${mark}"`),
    }
  },
}

/**
 * Templates whose software is packaged by Debian or npm, by their names: those first whose images take longest,
 * so that two at a time end together.
 */
export const STACKS: Record<string, Stack> = {
  'node-red': node_red,
  verdaccio,
  wordpress,
  miniflux,
  dokuwiki,
  'docker-registry': registry,
  victoriametrics,
  prometheus,
  nats,
  syncthing,
}
