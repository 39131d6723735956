import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [{ path: '/welcome', component: () => import('./pages/WelcomePage.vue') }],
})
