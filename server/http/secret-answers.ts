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

const asked = new WeakMap<Shape, boolean>()

/** Whether a schema marks anything as a secret: most do not, and then thousands of values need no look. */
function mayHold(shape: Shape): boolean {
  const known = asked.get(shape)
  if (known !== undefined) return known
  const parts = [
    ...(shape.pipe ?? []),
    ...(shape.options ?? []),
    ...Object.values(shape.entries ?? {}),
    ...[shape.wrapped, shape.item, shape.value],
  ]
  const found =
    isSecret(shape) ||
    shape.getter !== undefined ||
    parts.some((part) => typeof part === 'object' && mayHold(part))
  asked.set(shape, found)
  return found
}

function holds(shape: Shape, value: unknown): boolean {
  if (value === null || value === undefined || !mayHold(shape)) return false
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

const isSecret = ({ pipe }: Shape): boolean =>
  pipe?.some(({ kind, metadata }) => kind !== 'schema' && metadata?.format === 'password') ?? false

function mask(shape: Shape, value: unknown): unknown {
  if (value === null || value === undefined) return value
  if (isSecret(shape)) return MASK
  const parts = [...(shape.pipe ?? []), shape.wrapped, shape.getter?.(value), ...(shape.options ?? [])]
  const inner = parts.filter((part) => typeof part === 'object' && part !== shape && part.kind === 'schema')
  // What any of the choices marks is a secret.
  const seen = inner.reduce((masked: unknown, part) => mask(part as Shape, masked), value)
  if (Array.isArray(seen)) return shape.item ? seen.map((one) => mask(shape.item!, one)) : seen
  if (typeof seen !== 'object' || seen === null) return seen
  return Object.fromEntries(
    Object.entries(seen).map(([key, one]) => {
      const part = own(shape.entries, key) ?? shape.value
      return [key, part ? mask(part, one) : one]
    }),
  )
}

/** An answer in which the values of fields that are marked as secrets are not to be seen. */
export const withoutSecrets = <Answer>(schema: v.GenericSchema, answer: Answer): Answer =>
  mask(schema as unknown as Shape, answer) as Answer

/** Whether an answer holds a value of a field that is marked as a secret. */
export const holdsSecret = (schema: v.GenericSchema | undefined, answer: unknown): boolean =>
  schema !== undefined && holds(schema as unknown as Shape, answer)
