import * as v from 'valibot'
import { parseForeignJson } from '#server/kernel/json'

const Incoming = v.variant('type', [
  v.strictObject({
    type: v.literal('subscribe'),
    channel: v.pipe(v.string(), v.maxLength(200)),
    after: v.optional(
      v.union([v.pipe(v.string(), v.maxLength(64)), v.pipe(v.number(), v.integer(), v.minValue(0))]),
    ),
  }),
  v.strictObject({ type: v.literal('unsubscribe'), channel: v.pipe(v.string(), v.maxLength(200)) }),
  v.strictObject({ type: v.literal('ping') }),
])
export type Incoming = v.InferOutput<typeof Incoming>

/** What a client says; undefined when it is nothing that can be said. */
export function readIncoming(text: string): Incoming | undefined {
  try {
    const parsed = v.safeParse(Incoming, parseForeignJson(text))
    return parsed.success ? parsed.output : undefined
  } catch {
    return undefined
  }
}
