import { stringify } from 'yaml'
import type { EndpointHandler } from './endpoint.ts'
import { buildDocument } from './openapi.ts'
import type { JsonSchema } from './openapi-schemas.ts'

/** A route as the build lists it. */
export interface ListedEndpoint {
  path: string
  method: string
  load(): Promise<{ default: EndpointHandler }>
}

/** The document as text, built at the first request for it and kept. */
export interface Documents {
  json(version: string, public_url: string | undefined): Promise<string>
  yaml(version: string, public_url: string | undefined): Promise<string>
}

export function createDocuments(listed: readonly ListedEndpoint[]): Documents {
  const once = (render: (document: JsonSchema) => string) => {
    let text: Promise<string> | undefined
    const build = async (version: string, public_url: string | undefined) => {
      const endpoints = await Promise.all(
        listed.map(async ({ path, method, load }) => ({
          path,
          method,
          definition: (await load()).default.definition,
        })),
      )
      return render(buildDocument(endpoints, { version, public_url }))
    }
    // A failed build is not kept.
    return (version: string, public_url: string | undefined) =>
      (text ??= build(version, public_url).catch((error: unknown) => {
        text = undefined
        throw error
      }))
  }
  return {
    json: once((document) => JSON.stringify(document)),
    yaml: once((document) => stringify(document, { aliasDuplicateObjects: false, lineWidth: 0 })),
  }
}
