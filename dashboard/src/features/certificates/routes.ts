import { ShieldCheck } from '@lucide/vue'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [{ path: '/certificates', component: () => import('./pages/CertificateList.vue') }],
  entries: [
    { label: 'Certificates', to: '/certificates', icon: ShieldCheck, group: 'Deliver', order: 4, key: 'c' },
  ],
  resources: { certificate: () => '/certificates' },
})
