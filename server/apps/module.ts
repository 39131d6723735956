import { defineModule } from '#server/kernel/module'
import { createAppsDomain } from './assembly.ts'

export default defineModule({
  name: 'apps',
  resources: [{ noun: 'app', table: 'apps', status_column: 'status', quota: 'apps' }],
  create: createAppsDomain,
})
