/** The longest excerpt of a foreign text that an error message carries. */
const EXCERPT_LENGTH = 300

/** Characters at each end of a foreign text in which what it says is looked for. */
const LOOKED_AT = 4096

/** The ends of a text that a stranger may make as long as they like: it is cut before an expression sees it. */
export const endsOf = (text: string): string =>
  text.length <= 2 * LOOKED_AT ? text : `${text.slice(0, LOOKED_AT)} … ${text.slice(-LOOKED_AT)}`

/**
 * Makes a text of the engine, a registry or a user fit for a sentence of ours: one line, no control
 * characters (which could forge log lines or drive a terminal), bounded.
 */
export function clampMessage(text: string, length = EXCERPT_LENGTH): string {
  const flat = text
    .replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g, ' ')
    .replace(/ {2,}/g, ' ')
    .trim()
  return flat.length > length ? `${flat.slice(0, length - 1)}…` : flat
}
