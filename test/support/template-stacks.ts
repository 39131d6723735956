import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

export type Ask = (
  method: string,
  path: string,
  options?: { headers?: Record<string, string>; body?: string },
) => Promise<{ status: number; headers: IncomingHttpHeaders; body: string }>

/** How a stack is used by its client; a mark is anything that the client finds again. */
interface Used {
  /** What is done once, such as an installer. */
  begin?(): Promise<void>
  /** Absent where the software takes nothing from clients. */
  write?(mark: string): Promise<void>
  shows(mark: string): Promise<boolean>
}
interface Stack {
  variables?: Record<string, string>
  /** `credentials` are those that the platform shows of its services. */
  use(ask: Ask, credentials: Record<string, string>): Used
}

const JSON_TYPE = { 'content-type': 'application/json' }
const FORM_TYPE = { 'content-type': 'application/x-www-form-urlencoded' }
const form = (fields: Record<string, string>) => new URLSearchParams(fields).toString()

/** Throws unless the answer is a good one, with what it says. */
async function good(asked: ReturnType<Ask>): ReturnType<Ask> {
  const answer = await asked
  if (answer.status >= 400) throw new Error(`${answer.status}: ${answer.body.slice(0, 300)}`)
  return answer
}
/** A stack of which its page says that it works. */
const page = (path: string, text: string): Stack => ({
  use: (ask) => ({ shows: async () => (await good(ask('GET', path))).body.includes(text) }),
})

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

/** Templates whose software is packaged by Debian or npm, by their names. */
export const STACKS: Record<string, Stack> = {
  miniflux,
  wordpress,
  'node-red': node_red,
  dokuwiki,
  'docker-registry': registry,
  syncthing,
  adminer: page('/', 'Adminer'),
  phpmyadmin: page('/', 'pma_servername'),
  prometheus: page('/api/v1/query?query=up', '"job":"prometheus"'),
  nats: page('/varz', '"jetstream"'),
}
