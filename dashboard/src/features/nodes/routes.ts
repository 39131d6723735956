import { Plus, Server } from '@lucide/vue'
import { is_admin } from '@/api/session'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [
    { path: '/nodes', component: () => import('./pages/NodesPage.vue') },
    { path: '/nodes/:id', name: 'node', component: () => import('./pages/NodePage.vue') },
  ],
  entries: [{ label: 'Servers', to: '/nodes', icon: Server, group: 'Server', order: 0.5 }],
  commands: [{ label: 'Add a server', to: '/nodes?new=1', icon: Plus, visible: () => is_admin.value }],
  resources: { node: (id) => `/nodes/${id}` },
})
