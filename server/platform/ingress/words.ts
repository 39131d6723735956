import { createHash } from 'node:crypto'

/**
 * A text that somebody typed, as one word of a map: nothing in it can end a line, a field or a command. The edge's program
 * reads it back, character by character, as it was.
 */
export function encodeWord(text: string): string {
  return [...Buffer.from(text, 'utf8')].map((byte) => {
    const character = String.fromCharCode(byte)
    return /[A-Za-z0-9._~/:=&-]/.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }).join('')
}

/** A list as its rules name it: by its content and length, so that a new list never mixes with the one it replaces. */
export const listName = (texts: string[]): string => `${createHash('sha256').update(texts.join('\n')).digest('hex').slice(0, 16)}.${texts.length}`

/** Where an item of a list of a backend is found. */
export const partKey = (backend: string, texts: string[], index: number): string => `${backend}/${listName(texts)}/${index + 1}`
