import { createHash } from 'node:crypto'

/** How each byte stands in a word: looked up, since lists of megabytes come here. */
const ENCODED = Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte)
  return /[A-Za-z0-9._~/:=&-]/.test(character)
    ? character
    : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
})

/**
 * A text that somebody typed, or bytes of one, as one word of a map: nothing in it can end a line, a field or a
 * command. The edge's program reads it back, character by character, as it was.
 */
export function encodeWord(text: string | Uint8Array): string {
  const bytes = typeof text === 'string' ? Buffer.from(text, 'utf8') : text
  let word = ''
  for (let at = 0; at < bytes.length; at++) word += ENCODED[bytes[at]!]
  return word
}

/** A command of the edge has room for more, but a single word may be longer than this. */
const PACK = 8_000

/**
 * Words of one list, as few entries of a map: each is a command when the list changes. No word has a comma.
 */
export function packWords(words: string[]): string[] {
  const packs: string[] = []
  for (const word of words) {
    const last = packs.at(-1)
    if (last === undefined || last.length + word.length > PACK) packs.push(word)
    else packs[packs.length - 1] = `${last},${word}`
  }
  return packs
}

/**
 * A list as its rules name it: by its content and length, so that a new list never mixes with the one it
 * replaces.
 */
export const listName = (texts: string[]): string =>
  `${createHash('sha256').update(texts.join('\n')).digest('hex').slice(0, 16)}.${texts.length}`

/** A list of a backend as entries of a map: the list is named once, however many items it has. */
export function partEntries(backend: string, texts: string[]): { key: string; value: string }[] {
  const name = listName(texts)
  return texts.map((value, index) => ({ key: `${backend}/${name}/${index + 1}`, value }))
}
