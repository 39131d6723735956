import { HardDrive } from '@lucide/vue'
import { may } from '@/api/session'
import { defineFeature } from '@/shell/feature'

export default defineFeature({
  routes: [{ path: '/volumes', component: () => import('./pages/VolumeList.vue') }],
  app_tabs: [
    { label: 'Storage', path: 'storage', order: 6, component: () => import('./pages/AppStorage.vue') },
  ],
  entries: [{ label: 'Volumes', to: '/volumes', icon: HardDrive, group: 'Data', order: 2, key: 'v' }],
  commands: [
    { label: 'Create a volume', to: '/volumes?new=1', icon: HardDrive, visible: () => may('developer') },
  ],
  resources: { volume: () => '/volumes' },
})
