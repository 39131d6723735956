import type { AppStatus } from '#server/apps/schema'
import type { Route } from '#server/platform/ingress/ingress'
import { WAITING_PAGES } from '#server/platform/ingress/render/pages'

/**
 * Gives the routes of an app that has never served a page that says why: that it is being made, or that this
 * failed. A page of a domain's own goes first, and so does maintenance.
 */
export function withWaitingPage(
  routes: Route[],
  app: { status: AppStatus; live_release_id: string | null },
): Route[] {
  const page = WAITING_PAGES.get(app.status)
  if (page === undefined || app.live_release_id !== null) return routes
  return routes.map((route) =>
    route.servers.length > 0 || route.maintenance || route.error_pages?.['503'] !== undefined
      ? route
      : { ...route, error_pages: { ...route.error_pages, 503: page } },
  )
}
