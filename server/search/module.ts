import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import type { Templates } from '#server/templates/service'
import { createSearch } from './service.ts'

export default defineModule({
  name: 'search',
  create: ({ modules }: Base, use: { templates: Pick<Templates, 'named'> }) =>
    createSearch({
      sources: () => modules.sources('search'),
      templates: (text) => use.templates.named(text),
    }),
})
