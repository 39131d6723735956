import { defineFeature } from '@/shell/feature'
import { app_variables } from './queries.ts'

export default defineFeature({
  routes: [],
  app_tabs: [
    {
      label: 'Variables',
      path: 'variables',
      order: 4,
      ahead: ({ id }) => app_variables.ahead(String(id)),
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
