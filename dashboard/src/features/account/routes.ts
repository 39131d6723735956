import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [
    { path: '/login', component: () => import('./pages/LoginPage.vue'), meta: { open: true, bare: true } },
    {
      path: '/invitation',
      component: () => import('./pages/InvitationPage.vue'),
      meta: { open: true, bare: true },
    },
    {
      path: '/forgot-password',
      component: () => import('./pages/ForgotPasswordPage.vue'),
      meta: { open: true, bare: true },
    },
    {
      path: '/reset-password',
      component: () => import('./pages/ResetPasswordPage.vue'),
      meta: { open: true, bare: true },
    },
    { path: '/password', component: () => import('./pages/FirstPasswordPage.vue'), meta: { bare: true } },
  ],
})
