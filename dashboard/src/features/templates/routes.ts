import { LayoutGrid } from '@lucide/vue'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [
    { path: '/templates', component: () => import('./pages/TemplateList.vue') },
    { path: '/templates/:slug', name: 'template', component: () => import('./pages/TemplatePage.vue') },
  ],
  entries: [{ label: 'Templates', to: '/templates', icon: LayoutGrid, group: 'Deliver', order: 6, key: 'y' }],
  resources: { template: (slug) => `/templates/${slug}` },
})
