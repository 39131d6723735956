import { CornerUpRight } from '@lucide/vue'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [{ path: '/redirects', component: () => import('./pages/RedirectList.vue') }],
  entries: [
    { label: 'Redirects', to: '/redirects', icon: CornerUpRight, group: 'Deliver', order: 5, key: 'r' },
  ],
  resources: { redirect: () => '/redirects' },
})
