import { BookOpen } from '@lucide/vue'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [{ path: '/explorer', component: () => import('./pages/ExplorerPage.vue') }],
  entries: [{ label: 'API explorer', to: '/explorer', icon: BookOpen, group: 'Server', order: 9, key: 'e' }],
})
