import { VueQueryPlugin } from '@tanstack/vue-query'
import { createApp } from 'vue'
import { onReopened } from '@/api/live'
import { query_client } from '@/api/queries'
import { startClock } from '@/lib/clock'
import { keepDrafts } from '@/lib/drafts'
import { stampStyles } from '@/lib/nonce'
import { startTheme } from '@/lib/theme'
import { lookForUpgrade } from '@/shell/upgrade'
import App from './app.vue'
import { router } from './router.ts'
import '@/ui/tokens.css'

stampStyles()
startTheme()
startClock()
keepDrafts(sessionStorage)
onReopened(() => void lookForUpgrade().catch(() => undefined))

createApp(App).use(VueQueryPlugin, { queryClient: query_client }).use(router).mount('#app')
