import { CalendarClock } from '@lucide/vue'
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
  resources: { cron_job: (id) => `/cron-jobs/${id}` },
})
