import { Database, Plus } from '@lucide/vue'
import { may } from '@/api/session'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [
    { path: '/databases', component: () => import('./pages/DatabaseList.vue') },
    { path: '/databases/:id', name: 'database', component: () => import('./pages/DatabasePage.vue') },
  ],
  entries: [{ label: 'Databases', to: '/databases', icon: Database, group: 'Data', order: 1, key: 'b' }],
  commands: [
    { label: 'Create a database', to: '/databases?new', icon: Plus, visible: () => may('developer') },
  ],
  resources: { database: (id) => `/databases/${id}` },
})
