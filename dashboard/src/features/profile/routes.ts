import { UserRound } from '@lucide/vue'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [
    {
      path: '/profile',
      component: () => import('./pages/ProfileFrame.vue'),
      children: [
        { path: '', component: () => import('./pages/AccountPage.vue') },
        { path: 'two-factor', component: () => import('./pages/TwoFactorPage.vue') },
        { path: 'api-keys', component: () => import('./pages/ApiKeysPage.vue') },
        { path: 'sessions', component: () => import('./pages/SessionsPage.vue') },
      ],
    },
  ],
  commands: [
    { label: 'Your sessions', to: '/profile/sessions', icon: UserRound },
    { label: 'Create an API key', to: '/profile/api-keys?new=1', icon: UserRound },
    { label: 'Your profile', to: '/profile', icon: UserRound },
    { label: 'Your API keys', to: '/profile/api-keys', icon: UserRound },
    { label: 'Your two-factor authentication', to: '/profile/two-factor', icon: UserRound },
  ],
})
