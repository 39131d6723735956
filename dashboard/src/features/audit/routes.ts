import { ScrollText } from '@lucide/vue'
import { is_admin } from '@/api/session'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [{ path: '/audit', component: () => import('./pages/AuditLog.vue') }],
  entries: [
    {
      label: 'Audit log',
      to: '/audit',
      icon: ScrollText,
      group: 'Server',
      order: 4,
      key: 'l',
      visible: () => is_admin.value,
    },
  ],
})
