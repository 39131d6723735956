import type { DocumentTexts } from '#server/http/openapi-text'

let made: Promise<DocumentTexts> | undefined
async function make(): Promise<DocumentTexts> {
  const { renderDocuments } = await import('#server/http/openapi-documents')
  const { tagsOf } = await import('#server/kernel/compose')
  const { MODULES } = await import('#server/modules')
  const { readDefinitions } = await import('./routes.ts')
  return renderDocuments(await readDefinitions(), { version: '0.0.0', tags: tagsOf(MODULES) })
}
const textOf = (form: keyof DocumentTexts) => async () => (await (made ??= make()))[form]

/** What the build puts into `#api-document`, for tests that run without it. */
export const documentTexts = { json: textOf('json'), yaml: textOf('yaml') }
