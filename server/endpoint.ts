import { endpointsOf } from '#server/http/endpoint'
import type { Services } from '#server/modules'

/** Declares one endpoint; see `EndpointDefinition`. */
export const endpoint = endpointsOf<Services>()
