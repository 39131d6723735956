import * as v from 'valibot'
import type { SessionEnd } from '#server/kernel/channels'

const side = (what: string) =>
  v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1000), v.description(what)))

/** `data` of the message that opens a terminal. */
export const TerminalOptions = v.strictObject({
  instance_id: v.optional(
    v.pipe(v.string(), v.maxLength(128), v.description('Instance to open it in; default the first.')),
  ),
  cols: side('Columns of the terminal; default 80.'),
  rows: side('Rows of the terminal; default 24.'),
})

/** Why a terminal ended. */
export type TerminalEnd =
  | SessionEnd
  /** The shell ended. */
  | 'exited'
  /** The image has no shell. */
  | 'no_shell'
  | 'instance_gone'
  | 'idle'
  | 'too_long'
  /** The engine could not open it. */
  | 'failed'
  /** Portreeve itself ended while it was open. */
  | 'server_restarted'
