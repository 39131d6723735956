import { own } from '#server/kernel/own'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { getCookie, getRequestHeader, type H3Event, setResponseHeader } from 'h3'
import { notFound } from '#server/kernel/errors'
import { takes } from './reply.ts'
import { carriesSession } from './session-cookie.ts'

const TYPES: Record<string, string> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  woff2: 'font/woff2',
}
const ENCODINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const
/** Names as the build makes them: no folder, no leading dot. */
const ASSET = /^[\w-]+(?:\.[\w-]+)*\.(js|css|svg|woff2)$/

/** What the pages may load and do. `R` stands for the nonce of one page. */
export const pagePolicy = (nonce: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "style-src-attr 'none'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types vue',
  ].join('; ')

/** Facts that the page is sent with, so that it needs no request to know them. */
export interface PageFacts {
  nonce: string
  /** Chosen in this browser; the system decides when absent. */
  theme: 'light' | 'dark' | undefined
  /** Whether the browser has a session, which may have ended. */
  session: boolean
  /** How to get in, while nobody has logged in to this installation yet. */
  first_run?: { password_file: string; email?: string } | undefined
}

/** A fact as an attribute of the page: nothing in it ends the attribute or the element. */
const attribute = (name: string, text: string) =>
  ` ${name}="${text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')}"`

/** Fills the facts of one answer into the built page. */
export function renderPage(template: string, { nonce, theme, session, first_run }: PageFacts): string {
  const facts = [
    theme ? ` data-theme="${theme}"` : '',
    session ? ' data-session' : '',
    first_run ? attribute('data-first-run', first_run.password_file) : '',
    first_run?.email ? attribute('data-first-email', first_run.email) : '',
  ]
  return template
    .replaceAll('__NONCE__', nonce)
    .replace('<html lang="en"', () => `<html lang="en"${facts.join('')}`)
}

/** The folder of the built dashboard, looked for upwards from a file of the server. */
function findDirectory(origin: string): string {
  let folder = dirname(fileURLToPath(origin))
  while (folder !== dirname(folder)) {
    for (const name of ['public', '.output/public'])
      if (existsSync(join(folder, name, 'index.html'))) return join(folder, name)
    folder = dirname(folder)
  }
  throw notFound('page')
}

/**
 * Reads files of which many may be on their way to clients that take them slowly, or never: all of them are sent
 * the same bytes, which stay in memory as long as somebody is.
 */
export function createSharedFiles() {
  const held = new Map<string, WeakRef<Buffer>>()
  const reading = new Map<string, Promise<Buffer>>()
  const load = async (path: string): Promise<Buffer> => {
    try {
      const bytes = await readFile(path)
      held.set(path, new WeakRef(bytes))
      return bytes
    } finally {
      reading.delete(path)
    }
  }
  return {
    read(path: string): Promise<Buffer> {
      const known = held.get(path)?.deref()
      if (known) return Promise.resolve(known)
      const begun = reading.get(path) ?? load(path)
      reading.set(path, begun)
      return begun
    },
  }
}

/** Serves the built dashboard from disk; nothing of it is read before somebody asks. */
export function createDashboard(origin: string) {
  let directory: string | undefined
  let template: string | undefined
  const folder = () => (directory ??= findDirectory(origin))
  const filesShared = createSharedFiles()
  return {
    /** Any address that a person may open. Files that do not exist are no pages. */
    async page(event: H3Event, first_run?: PageFacts['first_run']): Promise<string> {
      const last = event.path.split('?')[0]!.split('/').at(-1)!
      if (last.includes('.')) throw notFound('path')
      template ??= await readFile(join(folder(), 'index.html'), 'utf8')
      const nonce = randomBytes(16).toString('base64')
      const chosen = getCookie(event, 'theme')
      setResponseHeader(event, 'Content-Type', 'text/html; charset=utf-8')
      setResponseHeader(event, 'Content-Security-Policy', pagePolicy(nonce))
      const theme = chosen === 'light' || chosen === 'dark' ? chosen : undefined
      const session = carriesSession(getRequestHeader(event, 'cookie'))
      return renderPage(template, { nonce, theme, session, first_run })
    },
    /** A file of the build. Its name changes with its content, so a browser keeps it for good. */
    async asset(event: H3Event, name: string): Promise<Buffer> {
      const ending = ASSET.exec(name)?.[1]
      if (!ending) throw notFound('file')
      const accepted = getRequestHeader(event, 'accept-encoding')
      const file = join(folder(), 'assets', name)
      const [encoding, suffix] = ENCODINGS.find(
        ([word, end]) => takes(accepted, word) && existsSync(file + end),
      ) ?? [undefined, '']
      const bytes = await filesShared.read(file + suffix).catch(() => {
        throw notFound('file')
      })
      setResponseHeader(event, 'Content-Type', own(TYPES, ending)!)
      setResponseHeader(event, 'Cache-Control', 'public, max-age=31536000, immutable')
      setResponseHeader(event, 'Vary', 'Accept-Encoding')
      if (encoding) setResponseHeader(event, 'Content-Encoding', encoding)
      return bytes
    },
  }
}
