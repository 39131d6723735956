import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { CommandError } from '../terminal.ts'
import { EXIT } from './exit-codes.ts'

/** Whether somebody can be asked. */
export const canAsk = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true

/**
 * Asks for one line; what is typed for a secret is not shown.
 * @param options `instead`: a sentence, with a space before it, that says how else it can be given.
 */
export async function prompt(question: string, { secret = false, instead = '' } = {}): Promise<string> {
  if (!canAsk())
    throw new CommandError(
      `${question.replace(/[:?]\s*$/, '')} is missing, and there is no terminal to ask at.${instead}`,
      EXIT.USAGE,
    )
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  process.stderr.write(question)
  const lines = createInterface({
    input: process.stdin,
    output: secret ? silent : process.stderr,
    terminal: true,
  })
  try {
    return await lines.question('')
  } finally {
    lines.close()
    if (secret) process.stderr.write('\n')
  }
}

/**
 * Has somebody type the name of what is about to go; throws where another one is typed.
 * @param options `yes`: whether it was said already. `to`: what is done, after "Say --yes to". `warning`: what becomes
 * of it. `done`: the word for it in "nothing was …".
 */
export async function requireTyped(
  name: string,
  { yes, to, warning, done }: { yes: boolean | undefined; to: string; warning: string; done: string },
): Promise<void> {
  if (yes) return
  if (!canAsk()) throw new CommandError(`Say --yes to ${to}.`, EXIT.USAGE)
  if ((await prompt(`${warning} Type its name: `)) !== name)
    throw new CommandError(`That is not its name; nothing was ${done}.`, EXIT.USAGE)
}

/** Everything that comes by standard input, without the last line end. */
export async function readInput(): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
    .toString('utf8')
    .replace(/\r?\n$/, '')
}
