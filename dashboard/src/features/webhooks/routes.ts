import { Webhook } from '@lucide/vue'
import { may } from '@/api/session'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [
    { path: '/webhooks', component: () => import('./pages/WebhookList.vue') },
    { path: '/webhooks/:id', name: 'webhook', component: () => import('./pages/WebhookPage.vue') },
  ],
  entries: [
    {
      label: 'Webhooks',
      to: '/webhooks',
      icon: Webhook,
      group: 'Connect',
      order: 4,
      key: 'w',
      visible: () => may('developer'),
    },
  ],
  commands: [
    { label: 'Add a webhook', to: '/webhooks?new=1', icon: Webhook, visible: () => may('developer') },
  ],
  resources: { webhook: (id) => `/webhooks/${id}` },
})
