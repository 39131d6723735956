import { CornerUpRight } from '@lucide/vue'
import { may } from '@/api/session'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [{ path: '/redirects', component: () => import('./pages/RedirectList.vue') }],
  entries: [
    { label: 'Redirects', to: '/redirects', icon: CornerUpRight, group: 'Deliver', order: 5, key: 'r' },
  ],
  commands: [
    {
      label: 'Add a redirect',
      to: '/redirects?new=1',
      icon: CornerUpRight,
      visible: () => may('developer'),
    },
  ],
  resources: { redirect: () => '/redirects' },
})
