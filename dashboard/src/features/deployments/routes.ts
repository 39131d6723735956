import { Rocket } from '@lucide/vue'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [
    { path: '/deployments', component: () => import('./pages/DeploymentList.vue') },
    { path: '/deployments/:id', name: 'deployment', component: () => import('./pages/DeploymentPage.vue') },
  ],
  entries: [{ label: 'Deployments', to: '/deployments', icon: Rocket, group: 'Deliver', order: 2, key: 'd' }],
  app_tabs: [
    {
      label: 'Deployments',
      path: 'deployments',
      order: 1,
      component: () => import('./pages/AppDeployments.vue'),
    },
  ],
  resources: { deployment: (id) => `/deployments/${id}` },
})
