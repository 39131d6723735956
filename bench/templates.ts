/**
 * Templates are deployed for real, used by their clients, backed up, damaged, restored, upgraded and deleted.
 * Their images are made of Debian's and npm's packages where the engine has none.
 * `npx node bench/templates.ts [slug …]`
 */
import { ensureBusyboxImage } from '#test/support/engine-images'
import { startPortreeve } from '#test/support/portreeve'
import { STACKS } from '#test/support/template-stacks'
import { ensureTemplateImages } from '#test/support/template-images'
import { walkTemplate } from '#test/support/template-walk'
import { createReport, ms } from './support/report.ts'

const chosen = process.argv.slice(2)
const report = createReport('Templates, from the deployment to the upgrade')
await ensureBusyboxImage()
const portreeve = await startPortreeve()
try {
  for (const slug of chosen.length > 0 ? chosen : Object.keys(STACKS)) {
    await ensureTemplateImages(slug)
    const began = performance.now()
    const fault = await walkTemplate(portreeve, slug).then(
      () => undefined,
      (error: unknown) => String((error as Error).stack).slice(0, 1500),
    )
    report.check(slug, fault === undefined, fault ?? ms(performance.now() - began))
  }
} finally {
  await portreeve.dispose()
}
report.end()
