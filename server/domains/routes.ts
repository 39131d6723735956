import type { Route } from '#server/platform/ingress/ingress'
import type { DomainRow } from './repository.ts'

/**
 * The routes of an app: one for each of its domains, all to the same instances; a domain may name another port of them. A
 * domain that nobody has proven to own is no route.
 * @param addresses of the instances; none: the app does not run.
 * @param port on which the app serves.
 */
export const routesOf = (domains: readonly DomainRow[], addresses: readonly string[], port: number): Route[] =>
  domains.filter(({ status }) => status === 'active' || status === 'verified').map((domain) => ({
    id: domain.id,
    app_id: domain.app_id,
    hostnames: [domain.hostname],
    ...(domain.path === '/' ? {} : { path: domain.path }),
    servers: addresses.map((address) => ({ address, port: domain.port ?? port })),
  }))
