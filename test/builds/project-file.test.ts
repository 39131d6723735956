import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { detectApart } from '#server/builds/detect-apart'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'ptr-project-file-'))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))
const write = (files: Record<string, string>) => {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(root, name, '..'), { recursive: true })
    writeFileSync(join(root, name), text)
  }
}
const NODE = { 'package.json': '{"scripts":{"start":"node server.js"}}', 'server.js': '' }
const FILE = `
apps:
  web:
    build: { build_command: npm run make, release_command: npm run migrate }
    port: 4000
    health_check: { type: http, path: /up }
    processes: { worker: { command: node worker.js } }
    cron: { nightly: { expression: '0 3 * * *', command: npm run tidy } }
  api: { port: 5000 }
`

describe('portreeve.yaml in the root of a repository', () => {
  it('configures the app of its name that is deployed from it, and says so', async () => {
    write({ ...NODE, 'portreeve.yaml': FILE })
    const plan = await detectApart(root, { app: 'web' })
    expect(plan).toMatchObject({
      build_command: 'npm run make',
      release_command: 'npm run migrate',
      start_command: 'node server.js',
      port: 4000,
      health_check: { type: 'http', path: '/up' },
      processes: { worker: 'node worker.js' },
      cron_jobs: [{ schedule: '0 3 * * *', command: 'npm run tidy' }],
    })
    expect(plan.explanation).toContainEqual({ field: 'port', value: '4000', source: 'portreeve.yaml' })
    expect((await detectApart(root, { app: 'api' })).port).toBe(5000)
    expect((await detectApart(root, { app: 'other' })).port).toBe(3000)
  })
  it('counts for an app in a folder of the repository, and gives way to the settings of the app', async () => {
    write({ 'apps/api/package.json': NODE['package.json'], 'apps/api/server.js': '', 'portreeve.yaml': FILE })
    const folder = join(root, 'apps/api')
    expect((await detectApart(folder, { app: 'api', repository: root })).port).toBe(5000)
    expect((await detectApart(folder, { app: 'api', repository: root, port: 6000 })).port).toBe(6000)
  })
  it('is obeyed under any name of the app when it holds one app only', async () => {
    write({ ...NODE, 'portreeve.yml': 'apps: { web: { port: 4100 } }' })
    expect((await detectApart(root, { app: 'renamed' })).port).toBe(4100)
    expect((await detectApart(root, {})).port).toBe(4100)
  })
  it('that is wrong is refused with the place and the nearest name', async () => {
    write({ ...NODE, 'portreeve.yaml': 'apps: { web: { prt: 4000 } }' })
    await expect(detectApart(root, { app: 'web' })).rejects.toThrow(
      'portreeve.yaml is not right. apps.web.prt: is not known. Did you mean port?',
    )
  })
})
