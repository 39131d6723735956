import type { Route } from '../ingress.ts'

/**
 * The names of a route, aliases too, each with the path that it serves there. Two routes never have the same
 * place.
 */
export function hostPathsOf(
  route: Pick<Route, 'hostnames' | 'path' | 'aliases'>,
): [hostname: string, path: string][] {
  return [...route.hostnames, ...Object.keys(route.aliases ?? {})].map((hostname) => [
    hostname,
    route.path ?? '/',
  ])
}

/** A place as a user reads it. */
export const hostPathName = (hostname: string, path: string): string =>
  path === '/' ? hostname : hostname + path
