import { CalendarClock } from '@lucide/vue'
import { may } from '@/api/session'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [
    { path: '/cron-jobs', component: () => import('./pages/CronJobList.vue') },
    { path: '/cron-jobs/:id', name: 'cron_job', component: () => import('./pages/CronJobPage.vue') },
  ],
  app_tabs: [
    { label: 'Cron jobs', path: 'cron-jobs', order: 7, component: () => import('./pages/AppCronJobs.vue') },
  ],
  entries: [
    { label: 'Cron jobs', to: '/cron-jobs', icon: CalendarClock, group: 'Deliver', order: 2.5, key: 'k' },
  ],
  commands: [
    {
      label: 'Add a cron job',
      to: '/cron-jobs?new=1',
      icon: CalendarClock,
      visible: () => may('developer'),
    },
  ],
  resources: { cron_job: (id) => `/cron-jobs/${id}` },
})
