/** Writes docs/permissions.md from the definitions of the endpoints: `npm run permissions`. */
import { writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { permissionMatrix, renderPermissions } from '#server/http/permissions'
import { readEndpoints, ROOT } from '#test/support/routes'

// A module of the build: nothing here reads it, but routes name it.
registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier === '#api-document' ? '#test/support/virtual-api-document' : specifier, context),
})

const endpoints = await Promise.all(
  readEndpoints().map(async ({ method, path, load }) => ({
    method,
    path,
    definition: (await load()).default.definition,
  })),
)
writeFileSync(join(ROOT, 'docs/permissions.md'), renderPermissions(permissionMatrix(endpoints)))
process.stdout.write(`docs/permissions.md: ${endpoints.length} endpoints\n`)
