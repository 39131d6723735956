import { stringify } from 'yaml'
import type { EndpointHandler } from './definition.ts'
import { buildDocument, type DocumentFacts } from './openapi.ts'
import type { JsonSchema } from './openapi-schemas.ts'

/** A route as the build lists it. */
export interface ListedEndpoint {
  path: string
  method: string
  load(): Promise<{ default: EndpointHandler }>
}

/** The document as text, built at the first request for it and kept. */
export interface Documents {
  json(facts: DocumentFacts): Promise<string>
  yaml(facts: DocumentFacts): Promise<string>
}

export function createDocuments(listed: readonly ListedEndpoint[]): Documents {
  const once = (render: (document: JsonSchema) => string) => {
    let text: Promise<string> | undefined
    const build = async (facts: DocumentFacts) => {
      const endpoints = await Promise.all(
        listed.map(async ({ path, method, load }) => ({
          path,
          method,
          definition: (await load()).default.definition,
        })),
      )
      return render(buildDocument(endpoints, facts))
    }
    // A failed build is not kept.
    return (facts: DocumentFacts) =>
      (text ??= build(facts).catch((error: unknown) => {
        text = undefined
        throw error
      }))
  }
  return {
    json: once((document) => JSON.stringify(document)),
    yaml: once((document) => stringify(document, { aliasDuplicateObjects: false, lineWidth: 0 })),
  }
}
