import { readdirSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BUSYBOX_IMAGE, ensureBusyboxImage } from '#test/support/engine-images'
import { createInstallStage, type InstallStage } from '#test/support/install-stage'
import { docker, eventually } from '#test/support/portreeve'
import { probeApart } from '#test/support/probe-apart'

const LIMIT_MS = 600_000
let stage: InstallStage
let app_id: string
beforeAll(async () => {
  await ensureBusyboxImage()
  stage = await createInstallStage()
}, LIMIT_MS)
afterAll(() => stage.dispose(), LIMIT_MS)

/** What the app answers at the edge. */
const visit = () =>
  new Promise<string>((resolve, reject) => {
    const options = { port: stage.edge_port, headers: { host: 'kept.apps.test' } }
    request(options, (response) => {
      let body = ''
      response
        .on('data', (chunk: Buffer) => {
          body += chunk.toString()
        })
        .on('end', () => resolve(body.trim()))
    })
      .on('error', reject)
      .end()
  })
const containers = () => docker('ps', '--quiet', '--no-trunc', '--filter', `label=portreeve.app=${app_id}`)
const projects = async () =>
  ((await stage.call('GET', '/api/projects')).body.data as { name: string }[])
    .map(({ name }) => name)
    .toSorted()
/** The copies that upgrades left, the oldest first. */
const copies = () =>
  readdirSync(join(stage.data, 'backups')).filter((name) => /^before-migration-/.test(name))

describe('git pull && ./install.sh', () => {
  it(
    'installs, and says when nothing had to be done',
    async () => {
      const installed = stage.shell('./install.sh')
      expect(installed, installed.output).toMatchObject({ code: 0 })
      expect(installed.output).toMatch(/^Portreeve is ready: {2}http/m)
      expect(installed.output).toContain(`Log:                 ${stage.data}/supervisor/portreeve.log`)
      expect(stage.shell('./install.sh').output).toContain('nothing was changed')
      await stage.call('POST', '/api/projects', { name: 'from before' })
      const created = await stage.call('POST', '/api/apps', {
        name: 'kept',
        dockerfile: `FROM ${BUSYBOX_IMAGE}\nCMD mkdir -p /tmp/www && echo kept > /tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www\n`,
        port: 8080,
        soak_seconds: 0,
      })
      app_id = created.body.data.id
      await eventually(
        'The app serving',
        async () => ((await visit()) === 'kept' ? true : undefined),
        240_000,
      )
    },
    LIMIT_MS,
  )
  it(
    'brings the next commit, with a copy of the database from before, and apps lose no request',
    async () => {
      const before = containers()
      stage.publish({ 'server/version-of-the-test': 'after\n' }, 'the next version')
      const probes = await probeApart(stage.edge_port, 'kept.apps.test')
      const upgraded = stage.shell('git pull --quiet && ./install.sh')
      const { sent, failures } = await probes.stop()
      expect(upgraded, upgraded.output).toMatchObject({ code: 0 })
      expect(upgraded.output).toContain('Built Portreeve.')
      expect(upgraded.output).toContain('Restarted Portreeve.')
      expect(failures).toEqual([])
      // A machine that copies and starts in two seconds gets some forty in.
      expect(sent).toBeGreaterThan(10)
      expect(stage.hasTable('of_the_new_version')).toBe(true)
      expect(copies()).toHaveLength(1)
      expect([containers(), await visit()]).toEqual([before, 'kept'])
      expect(await projects()).toContain('from before')
      await stage.call('POST', '/api/projects', { name: 'from after' })
    },
    LIMIT_MS,
  )
  it(
    'goes back as the README says: an older version refuses the newer database and names the copy, which brings back what was',
    async () => {
      const before = containers()
      const back = stage.shell('./install.sh --stop && git checkout --quiet HEAD~1')
      expect(back, back.output).toMatchObject({ code: 0 })
      expect(await visit()).toBe('kept')
      const refused = stage.shell('./install.sh')
      expect(refused.code).toBe(1)
      expect(refused.output).toContain(`restore the copy ${join(stage.data, 'backups', copies()[0]!)}`)
      const restored = stage.shell(
        `rm -f .data/portreeve.db-wal .data/portreeve.db-shm && cp .data/backups/${copies()[0]} .data/portreeve.db && ./install.sh`,
      )
      expect(restored, restored.output).toMatchObject({ code: 0 })
      expect(stage.hasTable('of_the_new_version')).toBe(false)
      expect(await projects()).toContain('from before')
      expect(await projects()).not.toContain('from after')
      expect([containers(), await visit()]).toEqual([before, 'kept'])
    },
    LIMIT_MS,
  )
  it(
    'builds anew for a commit that changes nothing but templates',
    () => {
      const path = 'templates/ghost/template.yaml'
      stage.publish({ [path]: '# changed\n', 'server/version-of-the-test': 'before\n' }, 'a template')
      const pulled = stage.shell('git checkout --quiet main && git pull --quiet && ./install.sh')
      expect(pulled, pulled.output).toMatchObject({ code: 0 })
      stage.publish({ [path]: '# changed again\n' }, 'a template, again')
      expect(stage.shell('git pull --quiet && ./install.sh').output).toContain('Built Portreeve.')
    },
    LIMIT_MS,
  )
  it(
    'leaves a server that runs as it is when a setting is wrong, and says where its log is',
    async () => {
      const wrong = stage.shell('PORTREEVE_BASE_DOMAIN="not a domain" ./install.sh')
      expect(wrong.code).toBe(1)
      expect(wrong.output).toMatch(/taken back: it runs as before.*portreeve\.log\.$/m)
      expect([(await stage.call('GET', '/api/auth/me')).status, await visit()]).toEqual([200, 'kept'])
    },
    LIMIT_MS,
  )
})
