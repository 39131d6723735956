import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [{ path: '/databases/:id/terminal', component: () => import('./pages/DatabaseTerminal.vue') }],
  app_tabs: [
    { label: 'Terminal', path: 'terminal', order: 10, component: () => import('./pages/AppTerminal.vue') },
  ],
})
