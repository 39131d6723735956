import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { defineEventHandler, getRouterParam } from 'h3'
import { createDashboard, createSharedFiles } from '#server/http/dashboard'
import { startTestServer, type TestServer } from '#test/support/http-server'

const PAGE =
  '<!doctype html>\n<html lang="en">\n<script src="/assets/main.js" nonce="__NONCE__"></script>\n</html>\n'
/** A folder as an operator may call it. */
const FIRST_RUN = { password_file: '/srv/a "b"<$&>/initial-admin-password' }
const root = mkdtempSync(join(tmpdir(), 'portreeve-pages-'))
let server: TestServer
beforeAll(async () => {
  mkdirSync(join(root, 'public/assets'), { recursive: true })
  writeFileSync(join(root, 'public/index.html'), PAGE)
  writeFileSync(join(root, 'public/assets/main-1.js'), 'plain')
  writeFileSync(join(root, 'public/assets/main-1.js.br'), 'brotli')
  writeFileSync(join(root, 'public/assets/main-1.js.gz'), 'gzip')
  writeFileSync(join(root, 'public/secret.js'), 'outside')
  const dashboard = createDashboard(pathToFileURL(join(root, 'server/chunks/one.mjs')).href)
  const page = defineEventHandler((event) => dashboard.page(event, FIRST_RUN))
  const asset = defineEventHandler((event) => dashboard.asset(event, getRouterParam(event, 'file') ?? ''))
  server = await startTestServer(
    [
      { path: '/**', method: 'get', load: () => ({ default: page }) },
      { path: '/assets/:file', method: 'get', load: () => ({ default: asset }) },
    ],
    undefined,
  )
})
afterAll(async () => {
  await server.close()
  rmSync(root, { recursive: true, force: true })
})

describe('a page', () => {
  it('is the same under every address, so that links lead into the dashboard', async () => {
    for (const path of ['/', '/apps', '/apps/app_1/logs', '/no/such/page'])
      expect((await server.send('GET', path)).status, path).toBe(200)
  })
  it('carries a nonce of its own each time, and a policy that allows nothing else', async () => {
    const [one, two] = [await server.send('GET', '/'), await server.send('GET', '/')]
    const nonce = /nonce="([^"]+)"/.exec(one.text)![1]!
    const policy = one.headers.get('content-security-policy')!
    expect(nonce).toMatch(/^[A-Za-z0-9+/]{22}==$/)
    expect(two.text).not.toContain(nonce)
    expect(policy).toContain(`style-src 'self' 'nonce-${nonce}'`)
    expect(policy).toContain("default-src 'none'")
    expect(policy).not.toMatch(/unsafe|https?:|\*/)
    expect(one.headers.get('cache-control')).toBe('no-store')
  })
  it('knows the look that was chosen, and takes no other words from a cookie', async () => {
    const look = async (cookie: string) =>
      /data-theme="[^"]*"/.exec((await server.send('GET', '/', { headers: { cookie } })).text)?.[0]
    expect(await look('theme=dark')).toBe('data-theme="dark"')
    expect(await look('theme=%22%3E%3Cscript%3E')).toBeUndefined()
  })
  it('says where the first password is, whatever the folder is called', async () => {
    const { text } = await server.send('GET', '/')
    expect(text).toContain(
      '<html lang="en" data-first-run="/srv/a &quot;b&quot;&lt;$&amp;>/initial-admin-password">',
    )
  })
  it.each([
    ['over HTTP', 'session=one', true],
    ['over HTTPS', '__Host-session=one', true],
    ['nowhere', 'other=session', false],
  ])(
    'knows whether the browser has a session %s, so that a reload does not ask to log in',
    async (_where, cookie, is_known) => {
      const page = await server.send('GET', '/', { headers: { cookie } })
      expect(page.text.includes(' data-session')).toBe(is_known)
    },
  )
  it('does not stand in for files that do not exist', async () => {
    for (const path of ['/robots.txt', '/favicon.ico', '/.env', '/apps/x.js'])
      expect((await server.send('GET', path)).status, path).toBe(404)
  })
})

describe('a file of the build', () => {
  it('is kept by browsers for good, and sent as small as they take it', async () => {
    const get = (encoding: string) =>
      server.sendRaw('GET', '/assets/main-1.js', { 'accept-encoding': encoding })
    expect(await get('gzip, br')).toMatchObject({ text: 'brotli', headers: { 'content-encoding': 'br' } })
    expect(await get('gzip')).toMatchObject({ text: 'gzip', headers: { 'content-encoding': 'gzip' } })
    expect((await get('br;q=0, gzip;q=0.5')).text).toBe('gzip')
    expect((await get('br;q=0, gzip;q=0, vibrant')).text).toBe('plain')
    const plain = await get('identity')
    expect(plain.text).toBe('plain')
    expect(plain.headers['cache-control']).toBe('public, max-age=31536000, immutable')
    expect(plain.headers['content-type']).toBe('text/javascript; charset=utf-8')
  })
  it('lies in its folder and nowhere else', async () => {
    for (const path of [
      '/assets/..%2fsecret.js',
      '/assets/%2e%2e/secret.js',
      '/assets/none.js',
      '/assets/main-1.js.br',
      '/assets/.fingerprint',
    ])
      expect((await server.sendRaw('GET', path)).status, path).toBe(404)
  })
})

it('a file that many ask for is in memory once, however slowly they take it', async () => {
  const files = createSharedFiles()
  const path = join(root, 'public/assets/late-1.js')
  await expect(files.read(path)).rejects.toThrow('ENOENT')
  writeFileSync(path, 'plain')
  const [one, other] = await Promise.all([files.read(path), files.read(path)])
  expect(other).toBe(one)
  expect(await files.read(path)).toBe(one)
})
