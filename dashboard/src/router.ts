import { createRouter, createWebHistory, type RouteRecordRaw } from 'vue-router'
import { has_session, me, openSession } from '@/api/session'
import { password_due } from '@/api/client'
import { appTabs, type Feature, features, projectTabs, type Tab } from '@/shell/feature'
import { upgraded } from '@/shell/upgrade'

const found = import.meta.glob<{ default: Feature }>('./features/*/routes.ts', { eager: true })
features.push(...Object.values(found).map((module) => module.default))

const pagesOf = (tabs: Tab[]) => tabs.map(({ path, component }) => ({ path, component }) as RouteRecordRaw)
const added: Record<string, RouteRecordRaw[]> = { app: pagesOf(appTabs()), project: pagesOf(projectTabs()) }
for (const route of features.flatMap((feature) => feature.routes))
  route.children?.push(...(added[String(route.name)] ?? []))

const fallback: RouteRecordRaw = {
  path: '/:path(.*)*',
  name: 'unknown',
  component: () => import('@/shell/NotFound.vue'),
}

export const router = createRouter({
  history: createWebHistory(),
  routes: [...features.flatMap((feature) => feature.routes), fallback],
  scrollBehavior: (_to, _from, saved) => saved ?? { top: 0 },
})

let asked = false
/** Whoever is not logged in goes to the login, and comes back to where they wanted to go. */
router.beforeEach(async (to) => {
  if (!asked) {
    asked = true
    if (has_session()) await openSession()
  }
  if (to.meta.open) return true
  if (!me.value) return { path: '/login', query: to.fullPath === '/' ? {} : { next: to.fullPath } }
  if (password_due.value && to.path !== '/password') return { path: '/password' }
  return true
})

// A page of an older build is gone from the server.
router.onError((error: Error) => {
  if (/import|fetch|preload/i.test(error.message)) upgraded.value = true
})
