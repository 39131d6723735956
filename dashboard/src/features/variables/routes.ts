import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [],
  app_tabs: [
    {
      label: 'Variables',
      path: 'variables',
      order: 4,
      component: () => import('./pages/AppVariables.vue'),
    },
  ],
  project_tabs: [
    {
      label: 'Variables',
      path: 'variables',
      order: 1,
      component: () => import('./pages/ProjectVariables.vue'),
    },
  ],
})
