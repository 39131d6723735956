import { FolderKanban } from '@lucide/vue'
import { me } from '@/api/session'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [
    { path: '/projects', component: () => import('./pages/ProjectList.vue') },
    {
      path: '/projects/:id',
      name: 'project',
      component: () => import('./pages/ProjectFrame.vue'),
      // Others are added by features, see `project_tabs`.
      children: [
        { path: '', component: () => import('./pages/ProjectResources.vue') },
        { path: 'members', component: () => import('./pages/ProjectMembers.vue') },
        { path: 'settings', component: () => import('./pages/ProjectSettings.vue') },
      ],
    },
  ],
  entries: [{ label: 'Projects', to: '/projects', icon: FolderKanban, group: 'Connect', order: 0, key: 'p' }],
  commands: [
    {
      label: 'Create a project',
      to: '/projects?new=1',
      icon: FolderKanban,
      visible: () => me.value?.role !== 'viewer',
    },
  ],
  resources: { project: (id) => `/projects/${id}` },
})
