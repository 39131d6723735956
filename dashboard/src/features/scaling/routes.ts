import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [],
  app_tabs: [
    { label: 'Scaling', path: 'scaling', order: 8, component: () => import('./pages/AppScaling.vue') },
  ],
})
