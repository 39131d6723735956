import type { Apps } from '#server/apps/service'
import { defineModule, sealedById } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import type { PreviewScope } from './release-variables.ts'
import { createVariables } from './service.ts'

export default defineModule({
  name: 'env',
  tags: [
    {
      name: 'env',
      description: 'Variables of apps and projects.',
      paths: /^(apps|projects)\/:id\/env\b/,
    },
  ],
  sealed: [sealedById('variables', 'value'), sealedById('variables', 'preview_value')],
  create: (
    base: Base,
    use: {
      apps: Pick<Apps, 'find'>
      previews: { scopeOf(app_id: string, commit?: string): PreviewScope | undefined }
    },
  ) =>
    createVariables({
      ...base,
      ports: {
        app: (id) => use.apps.find(id),
        database: (project_id, name) => base.modules.offered(project_id, name),
        linked: (app) => base.modules.app.environment(app),
        preview: (app_id, commit) => use.previews.scopeOf(app_id, commit),
      },
    }),
  app: {
    secrets: (own, app) => own.secretValues(app),
    history: (own, app_id) => own.forgetHistory(app_id),
  },
})
