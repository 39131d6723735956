/** Control characters, line separators, and marks that show the text after them in another order than it has. */
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/
/** Marks of scripts that are read from the right: beside none of their letters they turn numbers and signs around. */
const OF_LETTERS = /[\u061c\u200f]/
const RIGHT_TO_LEFT =
  /(?=\p{L})[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u

/** Whether a text is more than one line, or is shown as another than it is: names stand in logs, mails and lists. */
export const hasControl = (text: string): boolean =>
  HIDDEN.test(text) || (OF_LETTERS.test(text) && !RIGHT_TO_LEFT.test(text))

/** A text as one line that is shown as it is. */
export const oneLine = (text: string): string => text.replace(new RegExp(`${HIDDEN.source}+`, 'g'), ' ')

/** A text of many lines without anything else that is hidden. */
export const plainText = (text: string): string => text.split(/\r?\n/).map(oneLine).join('\n')
