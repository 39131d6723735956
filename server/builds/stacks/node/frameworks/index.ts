import type { NodeApp } from '../manifest.ts'
import { angular } from './angular.ts'
import { astro } from './astro.ts'
import type { NodeFramework } from './framework.ts'
import { hydrogen } from './hydrogen.ts'
import { meteor } from './meteor.ts'
import { nestjs } from './nestjs.ts'
import { nextjs } from './nextjs.ts'
import { analog, nitro, solidStart, tanstackStart } from './nitro-based.ts'
import { nuxt } from './nuxt.ts'
import { reactRouter, remix } from './react-router.ts'
import { functionsFramework, qwik, servers } from './servers.ts'
import { startsServer } from './starts-server.ts'
import { staticSites } from './static-sites.ts'
import { sveltekit } from './sveltekit.ts'

/** Frameworks that own the whole app: their plan holds whatever else the package depends on. */
const META: readonly NodeFramework[] = [
  meteor,
  hydrogen,
  tanstackStart,
  solidStart,
  analog,
  remix,
  reactRouter,
  sveltekit,
  qwik,
  astro,
  nextjs,
  nuxt,
  angular,
]

/**
 * The order, and why: meta-frameworks first, since each brings Vite, webpack or Express along; then API
 * servers, when the package starts one; then generators of files, whose development server is no server to
 * deploy; then servers again, for packages that have one without a start script.
 */
export function frameworkOf(app: NodeApp): NodeFramework | undefined {
  const meta = META.find((framework) => framework.detect(app))
  if (meta !== undefined) return meta
  const server = [nestjs, functionsFramework, ...servers, nitro].find((framework) => framework.detect(app))
  const site = staticSites.find((framework) => framework.detect(app))
  if (site !== undefined && !startsServer(app, site.name))
    return server !== undefined && ownsTheApp(server.name) ? server : site
  return server ?? (site === undefined || startsServer(app, site.name) ? undefined : site)
}

/** Servers that bring a bundler for their own admin pages. */
function ownsTheApp(name: string): boolean {
  return [
    'adonis',
    'strapi',
    'keystone',
    'directus',
    'medusa',
    'redwood',
    'waku',
    'blitz',
    'nestjs',
    'nitro',
    'feathers',
    'sails',
    'loopback',
    'mastra',
    'modernjs',
    'marko-run',
    'one',
    'sapper',
    'functions-framework',
  ].includes(name)
}
