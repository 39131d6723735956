import { defineModule } from '#server/kernel/module'
import { createBuildsDomain } from './assembly.ts'

export default defineModule({
  name: 'builds',
  // Follows the settings from the start on.
  pools: { build: 1 },
  create: createBuildsDomain,
  start(own) {
    void own.removeLeft()
  },
})
