import { Box, Plus } from '@lucide/vue'
import { may } from '@/api/session'
import { defineFeature } from '@/shell/feature'
import { appAhead } from './queries/app.ts'

export default defineFeature({
  routes: [
    { path: '/apps', component: () => import('./pages/AppList.vue') },
    { path: '/apps/new', component: () => import('./pages/NewApp.vue') },
    {
      path: '/apps/:id',
      name: 'app',
      meta: { ahead: ({ id }) => appAhead(String(id)) },
      component: () => import('./pages/AppFrame.vue'),
      // Filled with the pages that features add, see `app_tabs`.
      children: [],
    },
  ],
  app_tabs: [
    { label: 'Overview', path: '', order: 0, component: () => import('./pages/AppOverview.vue') },
    { label: 'Logs', path: 'logs', order: 2, component: () => import('./pages/AppLogs.vue') },
    { label: 'Settings', path: 'settings', order: 13, component: () => import('./pages/AppSettings.vue') },
    { label: 'Events', path: 'events', order: 12, component: () => import('./pages/AppEvents.vue') },
  ],
  entries: [{ label: 'Apps', to: '/apps', icon: Box, group: 'Deliver', order: 1, key: 'a' }],
  commands: [{ label: 'Create an app', to: '/apps/new', icon: Plus, visible: () => may('developer') }],
  resources: { app: (id) => `/apps/${id}` },
})
