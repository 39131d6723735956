/**
 * Writes the types of the dashboard's client from the endpoints of this checkout, so that a renamed field breaks
 * the check of its types: `npm run dashboard:client`.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { dirname, join } from 'node:path'
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript'
import { readEndpoints, ROOT } from '#test/support/routes'

// A module of the build: outside of one, the list of files stands in for it.
registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier === '#endpoints' ? '#test/support/virtual-endpoints' : specifier, context),
})

const { createDocuments } = await import('#server/http/openapi-documents')
const document = await createDocuments(readEndpoints()).json({ version: '0.0.0', tags: [] })
const types = astToString(await openapiTS(JSON.parse(document) as OpenAPI3, { defaultNonNullable: false }))
const file = join(ROOT, 'dashboard/src/api/generated/schema.d.ts')
mkdirSync(dirname(file), { recursive: true })
writeFileSync(file, types)
const lines = readFileSync(file, 'utf8').split('\n').length
process.stdout.write(`dashboard/src/api/generated/schema.d.ts: ${lines} lines\n`)
