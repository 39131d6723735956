import * as v from 'valibot'
import type { SessionInput } from '#server/kernel/channels'
import { parseForeignJson } from '#server/kernel/json'
import { sentence } from '#server/kernel/sentences'

const Name = v.pipe(v.string(), v.maxLength(200))
const Size = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1000))

/** What a client can say. */
export const Incoming = v.variant('type', [
  v.strictObject({
    type: v.literal('subscribe'),
    channel: Name,
    after: v.optional(
      v.pipe(
        v.union([v.pipe(v.string(), v.maxLength(64)), v.pipe(v.number(), v.integer(), v.minValue(0))]),
        v.description(
          'Cursor of an earlier message: what came since then follows. Without it only what is new comes; `subscribed` says where that begins.',
        ),
      ),
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

const HOW =
  'Send {"type":"subscribe","channel":"…"}, {"type":"unsubscribe","channel":"…"} or {"type":"ping"}; in a terminal {"type":"input","channel":"…","data":{"text":"…"}} and {"type":"resize","channel":"…","data":{"cols":…,"rows":…}}.'

/** What a client says, or what is wrong with it: it names what the message lacks. */
export function readIncoming(text: string): Incoming | { fault: string } {
  let value: unknown
  try {
    value = parseForeignJson(text)
  } catch {
    return { fault: `The message is no JSON. ${HOW}` }
  }
  const parsed = v.safeParse(Incoming, value)
  if (parsed.success) return parsed.output
  const [issue] = parsed.issues
  const path = v.getDotPath(issue)
  return { fault: `${path === null ? '' : `${path}: `}${wrongIn(issue)} ${HOW}` }
}
const wrongIn = (issue: v.BaseIssue<unknown>): string =>
  issue.received === 'undefined' ? 'is missing.' : sentence(issue)

/** What a session is told. */
export const inputOf = (message: Extract<Incoming, { type: 'input' | 'resize' }>): SessionInput =>
  ({
    type: message.type,
    ...message.data,
  }) as SessionInput
