import { Settings } from '@lucide/vue'
import { is_admin } from '@/api/session'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [{ path: '/settings', component: () => import('./pages/SettingsPage.vue') }],
  entries: [
    {
      label: 'Settings',
      to: '/settings',
      icon: Settings,
      group: 'Server',
      order: 2,
      key: 's',
      visible: () => is_admin.value,
    },
  ],
})
