import { basename } from 'node:path'
import type { Nitro } from 'nitropack/types'
import pkg from '../../package.json' with { type: 'json' }
import { readMigrations } from '../../scripts/read-migrations.ts'
import { readTemplates } from '../../scripts/read-templates.ts'
import { buildDocuments, type FoundRoute } from '../../scripts/build-api-document.ts'
import type { DocumentTexts } from './openapi-text.ts'

const METHODS = /\.(get|post|put|delete)\.ts$/
/** Files below `routes/` that are no endpoints: the WebSocket and the pages. */
const EXCEPTIONS = ['ws.ts']

/**
 * The build-time part of endpoints: lists them for the OpenAPI document, gives every GET its HEAD, and stops
 * the build on what Nitro would serve wrongly without a word: two files for one route, a name without a
 * method, a test among the routes.
 */
export default function endpoints(nitro: Nitro): void {
  const routes = () =>
    nitro.scannedHandlers.filter(
      (found) => !found.middleware && found.route?.startsWith('/api/') && found.method,
    )
  nitro.options.virtual['#endpoints'] = () =>
    `export const endpoints = [${routes()
      .map(
        (found) =>
          `{ path: ${JSON.stringify(found.route)}, method: ${JSON.stringify(found.method)}, load: () => import(${JSON.stringify(found.handler)}) }`,
      )
      .join(',\n')}]`
  nitro.options.virtual['#migrations'] = () =>
    `export const migrations = ${JSON.stringify(readMigrations(nitro.options.rootDir))}`
  // One text in a file of its own, which is loaded when somebody asks for a template.
  nitro.options.virtual['#templates'] = () =>
    `export const readShelf = async () => JSON.parse((await import('#template-shelf')).shelf)`
  nitro.options.virtual['#template-shelf'] = () =>
    `export const shelf = ${JSON.stringify(JSON.stringify(readTemplates(nitro.options.rootDir)))}`
  addDocument(nitro, () => routes() as FoundRoute[])
  nitro.hooks.hook('rollup:before', () => {
    const seen = new Map<string, string>()
    for (const found of nitro.scannedHandlers.filter((one) => !one.middleware)) {
      const file = basename(found.handler)
      if (/\.(test|spec)\./.test(file))
        throw new Error(
          `${found.handler} is a test below routes/, where it would be served. Move it to test/.`,
        )
      if (found.route?.startsWith('/api/') && !METHODS.test(file) && !EXCEPTIONS.includes(file))
        throw new Error(`${found.handler} names no method. Call it e.g. ${file.replace(/\.ts$/, '.get.ts')}.`)
      const key = `${found.method ?? 'any'} ${found.route}`
      if (seen.has(key)) throw new Error(`${found.handler} and ${seen.get(key)} are the same route: ${key}.`)
      seen.set(key, found.handler)
      if (found.method === 'get') nitro.options.handlers.push({ ...found, method: 'head' })
    }
  })
}

/** Puts the API document into the build, each form as a text in a file of its own. */
function addDocument(nitro: Nitro, routes: () => FoundRoute[]): void {
  let made: Promise<DocumentTexts> | undefined
  const textOf = (form: keyof DocumentTexts) => async () => {
    made ??= buildDocuments(nitro.options.rootDir, routes(), pkg.version)
    return `export const text = ${JSON.stringify((await made)[form])}`
  }
  nitro.options.virtual['#api-document-json'] = textOf('json')
  nitro.options.virtual['#api-document-yaml'] = textOf('yaml')
  nitro.options.virtual['#api-document'] = () =>
    `export const documentTexts = {
  json: async () => (await import('#api-document-json')).text,
  yaml: async () => (await import('#api-document-yaml')).text,
}`
}
