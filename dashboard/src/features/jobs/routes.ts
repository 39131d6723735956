import { ListChecks } from '@lucide/vue'
import { is_admin } from '@/api/session'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [
    { path: '/jobs', component: () => import('./pages/JobList.vue') },
    { path: '/jobs/:id', component: () => import('./pages/JobPage.vue') },
  ],
  entries: [
    {
      label: 'Background jobs',
      to: '/jobs',
      icon: ListChecks,
      group: 'Server',
      order: 3,
      key: 'j',
      visible: () => is_admin.value,
    },
  ],
})
