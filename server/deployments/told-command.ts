import { redactor } from '#server/kernel/redact'
import { secretPartsOf } from '#server/kernel/secret-parts'

/** What stands behind the scheme of a header. */
const CREDENTIALS = /\b(?:bearer|basic|token) +[^\s'"]+/gi

/** What looks like a secret within a command: the password of an address, `--token=…`, a header. */
function* secretsIn(text: string): Generator<string> {
  for (const word of text.split(/[\s'"]+/)) yield* secretPartsOf(word.replace(/^-+/, ''))
  for (const [header] of text.matchAll(CREDENTIALS)) yield* secretPartsOf(header)
}

/**
 * A command as the audit trail tells it, which is kept for a year, exported, and read by keys that are shown no secrets.
 * @param redact takes out what is known to be a secret.
 */
export function toldCommand(
  command: string | readonly string[],
  redact: (text: string) => string,
): string | string[] {
  const told = (text: string) => redactor([...secretsIn(text)])(redact(text))
  return typeof command === 'string' ? told(command) : command.map(told)
}
