import { ShieldCheck } from '@lucide/vue'
import { may } from '@/api/session'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [{ path: '/certificates', component: () => import('./pages/CertificateList.vue') }],
  entries: [
    { label: 'Certificates', to: '/certificates', icon: ShieldCheck, group: 'Deliver', order: 4, key: 'c' },
  ],
  commands: [
    {
      label: 'Add a certificate',
      to: '/certificates?new=1',
      icon: ShieldCheck,
      visible: () => may('developer'),
    },
  ],
  resources: { certificate: () => '/certificates' },
})
