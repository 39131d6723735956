import { HardDrive } from '@lucide/vue'
import { is_admin } from '@/api/session'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [{ path: '/disk', component: () => import('./pages/DiskPage.vue') }],
  entries: [
    {
      label: 'Disk',
      to: '/disk',
      icon: HardDrive,
      group: 'Server',
      order: 4,
      visible: () => is_admin.value,
    },
  ],
})
