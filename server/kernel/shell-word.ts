/** A word that a shell takes as it is. */
export const PLAIN_WORD = /^[A-Za-z0-9_./:@%+,=-]+$/

/** One shell word, quoted only where it must be. */
export function shellWord(text: string): string {
  return PLAIN_WORD.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}
