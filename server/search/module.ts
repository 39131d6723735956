import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import { createSearch } from './service.ts'

export default defineModule({
  name: 'search',
  create: ({ modules }: Base) => createSearch({ sources: () => modules.sources('search') }),
})
