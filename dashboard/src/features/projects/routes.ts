import { FolderKanban } from '@lucide/vue'
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
  resources: { project: (id) => `/projects/${id}` },
})
