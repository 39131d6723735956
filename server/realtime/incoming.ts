import * as v from 'valibot'
import type { SessionInput } from '#server/kernel/channels'
import { parseForeignJson } from '#server/kernel/json'

const Name = v.pipe(v.string(), v.maxLength(200))
const Size = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1000))

const Incoming = v.variant('type', [
  v.strictObject({
    type: v.literal('subscribe'),
    channel: Name,
    after: v.optional(
      v.union([v.pipe(v.string(), v.maxLength(64)), v.pipe(v.number(), v.integer(), v.minValue(0))]),
    ),
    data: v.optional(v.record(v.string(), v.unknown())),
  }),
  v.strictObject({ type: v.literal('unsubscribe'), channel: Name }),
  v.strictObject({
    type: v.literal('input'),
    channel: Name,
    data: v.strictObject({ text: v.string() }),
  }),
  v.strictObject({
    type: v.literal('resize'),
    channel: Name,
    data: v.strictObject({ cols: Size, rows: Size }),
  }),
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

/** What a session is told. */
export const inputOf = (message: Extract<Incoming, { type: 'input' | 'resize' }>): SessionInput =>
  ({
    type: message.type,
    ...message.data,
  }) as SessionInput
