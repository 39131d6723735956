import {
  createRouter,
  createWebHistory,
  type RouteLocationNormalized,
  type RouteRecordRaw,
  START_LOCATION,
} from 'vue-router'
import { has_session, me, openSession } from '@/api/session'
import { password_due } from '@/api/client'
import { appTabs, type Feature, features, projectTabs, type Tab } from '@/shell/feature'
import { nextPage } from '@/lib/next-page'
import { untilTall } from '@/lib/tall'
import { isLostPage, openLostPage, wantPage } from '@/shell/lost-page'

const found = import.meta.glob<{ default: Feature }>('./features/*/routes.ts', { eager: true })
features.push(...Object.values(found).map((module) => module.default))

const pagesOf = (tabs: Tab[]) =>
  tabs.map(
    ({ path, component, ahead }) => ({ path, component, meta: { ahead } }) as unknown as RouteRecordRaw,
  )
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
  scrollBehavior: async (_to, _from, saved) => {
    if (saved) await untilTall(saved.top)
    return saved ?? { top: 0 }
  },
})

/** Begins to load the code of a page while it is asked who wants to see it. */
function loadCode({ matched }: RouteLocationNormalized): void {
  const parts = matched.flatMap(({ components }) => Object.values(components ?? {}))
  // What fails here fails again, and is told, when the page is opened.
  for (const load of parts as (() => Promise<unknown>)[])
    if (typeof load === 'function') load().catch(() => undefined)
}

let asked = false
/** Whoever is not logged in goes to the login, and comes back to where they wanted to go. */
router.beforeEach(async (to) => {
  if (!asked) {
    asked = true
    if (has_session()) {
      loadCode(to)
      try {
        await openSession()
      } catch {
        dispatchEvent(new Event('page-incomplete'))
        return false
      }
    }
  }
  // Whoever is logged in, in another tab, has nothing to do there.
  if (to.path === '/login' && me.value) return nextPage(to.query.next)
  if (to.meta.open) return true
  if (!me.value) return { path: '/login', query: to.fullPath === '/' ? {} : { next: to.fullPath } }
  if (password_due.value && to.path !== '/password') return { path: '/password' }
  for (const { meta } of to.matched) meta.ahead?.(to.params)
  return true
})

// Before the first page, nothing is lost by loading all again.
router.onError((error: Error, { fullPath }) => {
  if (!isLostPage(error)) return
  if (router.currentRoute.value === START_LOCATION) dispatchEvent(new Event('page-incomplete'))
  else void openLostPage(fullPath)
})
router.beforeEach(({ fullPath }) => wantPage(fullPath))
void router.isReady().then(
  () => dispatchEvent(new Event('page-complete')),
  () => undefined,
)
