/** The longest excerpt of a foreign text that an error message carries. */
const EXCERPT_LENGTH = 300

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
