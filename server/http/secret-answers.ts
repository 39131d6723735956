import { own } from '#server/kernel/own'
import type * as v from 'valibot'
import { MASK } from '#server/kernel/schemas'

/** The parts of a schema that values are found by. */
interface Shape {
  kind?: string
  type?: string
  metadata?: { format?: string }
  pipe?: readonly Shape[]
  wrapped?: Shape
  entries?: Record<string, Shape>
  item?: Shape
  value?: Shape
  options?: readonly (Shape | string)[]
  getter?: (input: unknown) => Shape
}

function holds(shape: Shape, value: unknown): boolean {
  if (value === null || value === undefined) return false
  // The first of a pipe is the schema that it was made from.
  if (shape.pipe)
    return shape.pipe.some((part) =>
      part.kind === 'schema' ? holds(part, value) : part.metadata?.format === 'password' && value !== MASK,
    )
  const choices = [shape.wrapped, shape.getter?.(value), ...(shape.options ?? [])]
  if (choices.some((choice) => typeof choice === 'object' && holds(choice, value))) return true
  if (Array.isArray(value)) return shape.item !== undefined && value.some((one) => holds(shape.item!, one))
  if (typeof value !== 'object') return false
  return Object.entries(value).some(([key, one]) => {
    const part = own(shape.entries, key) ?? shape.value
    return part !== undefined && holds(part, one)
  })
}

/** Whether an answer holds a value of a field that is marked as a secret. */
export const holdsSecret = (schema: v.GenericSchema | undefined, answer: unknown): boolean =>
  schema !== undefined && holds(schema as unknown as Shape, answer)
