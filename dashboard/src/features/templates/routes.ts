import { LayoutGrid, Library } from '@lucide/vue'
import { is_admin } from '@/api/session'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [
    { path: '/templates', component: () => import('./pages/TemplateList.vue') },
    { path: '/templates/catalogues', component: () => import('./pages/CatalogList.vue') },
    { path: '/templates/:slug', name: 'template', component: () => import('./pages/TemplatePage.vue') },
  ],
  entries: [{ label: 'Templates', to: '/templates', icon: LayoutGrid, group: 'Deliver', order: 6, key: 'y' }],
  commands: [
    {
      label: 'Add a catalogue of templates',
      to: '/templates/catalogues?new=1',
      icon: Library,
      visible: () => is_admin.value,
    },
    {
      label: 'Catalogues of templates',
      to: '/templates/catalogues',
      icon: Library,
      visible: () => is_admin.value,
    },
  ],
  resources: { template: (slug) => `/templates/${slug}` },
})
