import { LayoutDashboard } from '@lucide/vue'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [{ path: '/', component: () => import('./pages/OverviewPage.vue') }],
  entries: [{ label: 'Overview', to: '/', icon: LayoutDashboard, group: '', order: 0, key: 'o' }],
})
