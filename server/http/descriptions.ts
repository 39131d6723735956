import type { AnyEndpoint } from './definition.ts'

const DOCUMENT = /^application\/(json|yaml|vnd\.aai\.asyncapi)/

/** Whether an endpoint answers with a description of the API, which is a text that is made already. */
export const isDescription = ({ response, media_types }: Pick<AnyEndpoint, 'response' | 'media_types'>) =>
  !response && DOCUMENT.test(media_types?.[0] ?? '')
