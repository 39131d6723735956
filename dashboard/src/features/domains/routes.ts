import { Globe } from '@lucide/vue'
import { may } from '@/api/session'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [
    { path: '/domains', component: () => import('./pages/DomainList.vue') },
    { path: '/domains/:id', name: 'domain', component: () => import('./pages/DomainPage.vue') },
  ],
  entries: [{ label: 'Domains', to: '/domains', icon: Globe, group: 'Deliver', order: 3, key: 'n' }],
  commands: [{ label: 'Add a domain', to: '/domains?new=1', icon: Globe, visible: () => may('developer') }],
  app_tabs: [
    { label: 'Domains', path: 'domains', order: 5, component: () => import('./pages/AppDomains.vue') },
  ],
  resources: { domain: (id) => `/domains/${id}` },
})
