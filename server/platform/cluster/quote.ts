/** What a shell takes as it is. */
const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/

/** One argument as every POSIX shell reads it: nothing in it means anything. A NUL cannot be said at all. */
export function quoteArgument(text: string): string {
  if (text.includes('\0')) throw new Error('An argument cannot hold a NUL character.')
  return PLAIN.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** An argument array as the line that SSH has for a command: the other side gives it to the user's shell. */
export const quoteCommand = (argv: readonly string[]): string => argv.map(quoteArgument).join(' ')
