/**
 * An installed version is replaced by this one while its apps serve: containers are adopted, not restarted.
 * `npx node bench/upgrade.ts [--from=e20c05c]`. Builds the old version from the repository's history.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { docker, eventually } from '#test/support/portreeve'
import { startProber } from '#test/support/probe'
import { createReport, ms } from './support/report.ts'
import { onStage } from './support/stage.ts'

const from = /^--from=([0-9a-f]{7,40})$/.exec(process.argv[2] ?? '')?.[1] ?? 'e20c05c'
const report = createReport(`an upgrade from ${from}, with an app probed 20 times a second`)
const folder = mkdtempSync(join(tmpdir(), 'portreeve-old-'))
try {
  execFileSync('git', ['worktree', 'add', '--detach', folder, from], { stdio: 'ignore' })
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  execFileSync(resolve('node_modules/.bin/nitro'), ['build'], { cwd: folder, stdio: 'ignore' })
  process.env.PORTREEVE_ENTRY = join(folder, '.output/server/index.mjs')
  await onStage(async ({ portreeve, app }) => {
    const served = await app('served')
    const containers = () =>
      docker('ps', '--format', '{{.ID}} {{.CreatedAt}}', '--filter', `label=portreeve.app=${served.id}`)
    const before = containers()
    const prober = startProber(portreeve.edge_port, served.host)
    await portreeve.stop()
    const begun = performance.now()
    await portreeve.start({ PORTREEVE_ENTRY: resolve('.output/server/index.mjs') })
    report.figure('the new version is ready after', ms(performance.now() - begun))
    await eventually('The app being listed', async () =>
      (await portreeve.call('GET', `/api/apps/${served.id}`)).body.data.status === 'running'
        ? true
        : undefined,
    )
    // Time for the first pass of the reconciler.
    await new Promise((done) => setTimeout(done, 3000))
    report.check('containers of the old version are adopted', containers() === before, containers())
    const { body } = await portreeve.call('POST', `/api/apps/${served.id}/restart`)
    if (body.error) throw new Error(JSON.stringify(body.error))
    await eventually('The restart', () =>
      containers() === '' || containers().split('\n').length > 1 || containers() === before
        ? undefined
        : true,
    )
    await prober.stop()
    report.figure('probes', prober.sent())
    report.check(
      'failed probes: 0',
      prober.failures().length === 0,
      JSON.stringify(prober.failures().slice(0, 5)),
    )
  })
} finally {
  execFileSync('git', ['worktree', 'remove', '--force', folder], { stdio: 'ignore' })
  rmSync(folder, { recursive: true, force: true })
}
report.end()
