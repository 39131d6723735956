import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [],
  app_tabs: [
    { label: 'Previews', path: 'previews', order: 9, component: () => import('./pages/AppPreviews.vue') },
  ],
})
