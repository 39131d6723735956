/** The name in what was typed or pasted: an address is copied from a browser more often than a name. */
export const hostIn = (text: string): string =>
  text
    .trim()
    .replace(/^https?:\/\//i, '')
    .replace(/\/$/, '')
