import { readdirSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { EventHandler } from 'h3'
import type { EndpointHandler } from '#server/http/definition'

/** One file below `routes/`, read as Nitro reads it. */
export interface RouteFile {
  /** `/api/apps/:id`, `/**`. */
  path: string
  /** `get`; undefined for a file that serves every method. */
  method: string | undefined
  /** Path of the file in the checkout. */
  file: string
  load(): Promise<{ default: EventHandler }>
}
/** A route of the API, made by `endpoint()`. */
export interface EndpointFile extends RouteFile {
  method: string
  load(): Promise<{ default: EndpointHandler }>
}

export const ROOT = resolve(import.meta.dirname, '../..')
const SUFFIX = /\.(connect|delete|get|head|options|patch|post|put|trace)$/

let known: RouteFile[] | undefined

/** Every route of the checkout, in the order of their paths; looked for once, since no test changes them. */
export const readRoutes = (): RouteFile[] => (known ??= routesBelow(join(ROOT, 'routes')))

/** Every route below a folder, in the order of their paths. */
export function routesBelow(root: string): RouteFile[] {
  const files = readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
  return files.sort().map((file) => {
    const name = relative(root, file).replace(/\.ts$/, '')
    const method = SUFFIX.exec(name)?.[1]
    const path = `/${name.replace(SUFFIX, '')}`
      .replace(/\[\.{3}\]/g, '**')
      .replace(/\[\.{3}(\w+)\]/g, '**:$1')
      .replace(/\[([^\]/]+)\]/g, ':$1')
      .replace(/\/index$/, '')
    return {
      path: path || '/',
      method,
      file: relative(ROOT, file),
      load: () => import(pathToFileURL(file).href) as Promise<{ default: EventHandler }>,
    }
  })
}

/** The endpoints of the API; `ws.ts` is none. */
export const readEndpoints = (): EndpointFile[] =>
  readRoutes().filter(
    (route): route is EndpointFile => route.path.startsWith('/api/') && route.method !== undefined,
  )

/** Definitions of all endpoints. */
export const readDefinitions = () =>
  Promise.all(
    readEndpoints().map(async ({ method, path, load }) => ({
      method,
      path,
      definition: (await load()).default.definition,
    })),
  )
