import { Archive } from '@lucide/vue'
import { is_admin, may } from '@/api/session'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [
    {
      path: '/backups',
      component: () => import('./pages/BackupsFrame.vue'),
      children: [
        { path: '', component: () => import('./pages/BackupList.vue') },
        { path: 'schedules', component: () => import('./pages/ScheduleList.vue') },
        { path: 'destinations', component: () => import('./pages/DestinationList.vue') },
      ],
    },
    { path: '/backups/:id', name: 'backup', component: () => import('./pages/BackupPage.vue') },
  ],
  entries: [{ label: 'Backups', to: '/backups', icon: Archive, group: 'Data', order: 3, key: 'u' }],
  commands: [
    { label: 'Back up now', to: '/backups?new=1', icon: Archive, visible: () => may('developer') },
    {
      label: 'Add a backup schedule',
      to: '/backups/schedules?new=1',
      icon: Archive,
      visible: () => may('developer'),
    },
    {
      label: 'Add a backup destination',
      to: '/backups/destinations?new=1',
      icon: Archive,
      visible: () => is_admin.value,
    },
  ],
  resources: {
    backup: (id) => `/backups/${id}`,
    backup_schedule: () => '/backups/schedules',
    storage_provider: () => '/backups/destinations',
  },
})
