import { UserPlus, Users } from '@lucide/vue'
import { is_admin } from '@/api/session'
import { defineFeature } from '@/shell/feature'

const visible = () => is_admin.value

export default defineFeature({
  routes: [
    { path: '/team', component: () => import('./pages/TeamList.vue') },
    { path: '/roles', component: () => import('./pages/RolesPage.vue') },
  ],
  entries: [{ label: 'Team', to: '/team', icon: Users, group: 'Server', order: 1, key: 't', visible }],
  commands: [
    { label: 'Invite a colleague', to: '/team?invite=1', icon: UserPlus, visible },
    { label: 'What roles may do', to: '/roles', icon: Users },
  ],
  resources: { user: () => '/team' },
})
