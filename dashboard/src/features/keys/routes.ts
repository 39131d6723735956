import { Container, KeyRound, LockKeyhole } from '@lucide/vue'
import { is_admin, may } from '@/api/session'
import { defineFeature } from '@/shell/feature'

const visible = () => may('developer')

export default defineFeature({
  routes: [
    { path: '/ssh-keys', component: () => import('./pages/SshKeys.vue') },
    { path: '/git-credentials', component: () => import('./pages/GitCredentials.vue') },
    { path: '/registries', component: () => import('./pages/Registries.vue') },
  ],
  entries: [
    { label: 'SSH keys', to: '/ssh-keys', icon: KeyRound, group: 'Connect', order: 1, visible },
    {
      label: 'Git credentials',
      to: '/git-credentials',
      icon: LockKeyhole,
      group: 'Connect',
      order: 2,
      visible,
    },
    { label: 'Registries', to: '/registries', icon: Container, group: 'Connect', order: 3, visible },
  ],
  commands: [
    { label: 'Add an SSH key', to: '/ssh-keys?new=1', icon: KeyRound, visible },
    { label: 'Add a Git credential', to: '/git-credentials?new=1', icon: LockKeyhole, visible },
    {
      label: 'Add a registry',
      to: '/registries?new=1',
      icon: Container,
      visible: () => is_admin.value,
    },
  ],
  resources: {
    ssh_key: () => '/ssh-keys',
    git_credential: () => '/git-credentials',
    registry: () => '/registries',
  },
})
