import { join } from 'node:path'
import { defineModule } from '#server/kernel/module'
import { finishRotation } from '#server/kernel/secrets'
import type { Base } from '#server/platform/base'
import { createKeyRotation } from './rotation.ts'

export default defineModule({
  name: 'rotation',
  // The check that tells whether a key is the right one.
  sealed: [{ table: 'meta', column: 'value', key: ['key'], context: ({ key }) => `meta/${key}` }],
  create: ({ directories, modules, ...base }: Base) =>
    createKeyRotation({
      ...base,
      columns: modules.sealed,
      finish: () => finishRotation(join(directories.keys, 'secret.key')),
    }),
  start: (own) => own.start(),
})
