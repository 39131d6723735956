import { readShelf } from '#templates'
import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import { createTemplates } from './service.ts'
import { createShelf } from './shelf.ts'

export default defineModule({
  name: 'templates',
  tags: [{ name: 'templates', description: 'Stacks that are ready to deploy.' }],
  create: (_base: Base) => createTemplates({ shelf: createShelf(readShelf) }),
})
