import { defineModule } from '#server/kernel/module'
import { createIngressService } from './service.ts'

export default defineModule({
  name: 'ingress',
  create: createIngressService,
  start: (own) => own.start(),
  stop: (own) => own.stop(),
})
