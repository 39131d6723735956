import { defineEventHandler } from 'h3'
import type { HttpPorts } from './context.ts'
import type { AnyEndpoint, EndpointDefinition, EndpointHandler, Schema } from './definition.ts'
import { serve } from './pipeline.ts'
import { handOver } from './reply.ts'

/** Binds `endpoint()` to the type of the composed services. */
export function endpointsOf<S extends HttpPorts>() {
  return function endpoint<
    P extends Schema | undefined = undefined,
    Q extends Schema | undefined = undefined,
    B extends Schema | undefined = undefined,
    R extends Schema | undefined = undefined,
  >(definition: EndpointDefinition<S, P, Q, B, R>): EndpointHandler {
    return Object.assign(
      defineEventHandler(async (event) => handOver(event, await serve(definition as AnyEndpoint, event))),
      { definition: definition as AnyEndpoint },
    )
  }
}
