import { Server } from '@lucide/vue'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [{ path: '/nodes', component: () => import('./pages/NodesPage.vue') }],
  entries: [{ label: 'This server', to: '/nodes', icon: Server, group: 'Server', order: 0.5 }],
})
