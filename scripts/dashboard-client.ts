/**
 * Writes the types of the dashboard's client from the endpoints of this checkout, so that a renamed field breaks
 * the check of its types: `npm run dashboard:client`.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { dirname, join } from 'node:path'
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript'
import { buildDocument } from '#server/http/openapi'
import { readDefinitions, ROOT } from '#test/support/routes'

// A module of the build: nothing here reads it, but routes name it.
registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier === '#api-document' ? '#test/support/virtual-api-document' : specifier, context),
})

const document = buildDocument(await readDefinitions(), { version: '0.0.0', tags: [] })
const types = astToString(await openapiTS(document as unknown as OpenAPI3, { defaultNonNullable: false }))
const file = join(ROOT, 'dashboard/src/api/generated/schema.d.ts')
mkdirSync(dirname(file), { recursive: true })
writeFileSync(file, types)
const lines = readFileSync(file, 'utf8').split('\n').length
process.stdout.write(`dashboard/src/api/generated/schema.d.ts: ${lines} lines\n`)
