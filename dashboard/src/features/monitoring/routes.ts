import { Activity } from '@lucide/vue'
import { may } from '@/api/session'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [
    {
      path: '/monitoring',
      component: () => import('./pages/MonitoringFrame.vue'),
      children: [
        { path: '', component: () => import('./pages/ServerMetrics.vue') },
        { path: 'alerts', component: () => import('./pages/AlertList.vue') },
        { path: 'uptime', component: () => import('./pages/UptimeList.vue') },
      ],
    },
    { path: '/uptime/:id', component: () => import('./pages/UptimePage.vue') },
    { path: '/databases/:id/metrics', component: () => import('./pages/DatabaseMetrics.vue') },
  ],
  entries: [{ label: 'Monitoring', to: '/monitoring', icon: Activity, group: 'Watch', order: 1, key: 'm' }],
  app_tabs: [
    { label: 'Metrics', path: 'metrics', order: 3, component: () => import('./pages/AppMetrics.vue') },
  ],
  commands: [
    { label: 'Alerts', to: '/monitoring/alerts', icon: Activity },
    { label: 'Uptime checks', to: '/monitoring/uptime', icon: Activity },
    {
      label: 'Add an alert rule',
      to: '/monitoring/alerts?new=1',
      icon: Activity,
      visible: () => may('developer'),
    },
    {
      label: 'Add an uptime check',
      to: '/monitoring/uptime?new=1',
      icon: Activity,
      visible: () => may('developer'),
    },
  ],
  resources: {
    uptime_check: (id) => `/uptime/${id}`,
    alert_rule: () => '/monitoring/alerts',
  },
})
