import { stringify } from 'yaml'
import { buildDocument, type DocumentFacts } from './openapi.ts'
import type { DocumentedEndpoint } from './openapi-operation.ts'
import { ANY_ADDRESS, type DocumentTexts } from './openapi-text.ts'

/**
 * Makes the document in both forms. This is about half a second of work in one piece: the build does it, a server
 * never does.
 */
export function renderDocuments(
  endpoints: readonly DocumentedEndpoint[],
  facts: Omit<DocumentFacts, 'public_url'>,
): DocumentTexts {
  const document = buildDocument(endpoints, { ...facts, public_url: ANY_ADDRESS })
  return {
    json: JSON.stringify(document),
    yaml: stringify(document, { aliasDuplicateObjects: false, lineWidth: 0 }),
  }
}
