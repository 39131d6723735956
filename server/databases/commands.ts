import { once } from 'node:events'
import { PassThrough, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Fatal } from '#server/kernel/jobs/definition'
import { redactor } from '#server/kernel/redact'
import { shellWord } from '#server/kernel/shell-word'
import type { Engine } from '#server/platform/engine/engine'
import type { ContainerCommand } from './engine.ts'
import type { CommandResult, CommandStreams, DatabaseInstance } from './instance.ts'
import { untilSilent } from './silence.ts'

const OUTPUT_LIMIT_BYTES = 1024 ** 2
/** What prints more, for nobody to keep, would be read for as long as it likes. */
const MOST_PRINTED_BYTES = 16 * 1024 ** 2
const LAST_LINES = 20
/** What clients and servers call the reason; the statement that it is about stands behind it. */
const TELLING = /\b(?:errors?|fatal|failed|exception|denied|can't|cannot)\b/i
/** Characters of what a program said that a sentence has room for. */
const MOST_SAID = 500
/** Characters of the names of tables that a sentence has room for. */
const MOST_NAMES = 200
const NO_SPACE = /No space left on device|Disk quota exceeded/

/**
 * Reads a stream to its end and keeps the beginning. Whoever is inside of the container may put a
 * program without end in the place of any: to leave off breaks its stream, by which it is ended.
 */
async function beginningOf(stream: AsyncIterable<Buffer | string>, program = ''): Promise<string> {
  const kept: Buffer[] = []
  let size = 0
  for await (const chunk of stream) {
    size += chunk.length
    if (size > MOST_PRINTED_BYTES)
      throw new Fatal(
        'command_failed',
        `${program} printed more than ${MOST_PRINTED_BYTES / 1024 ** 2} MiB and was ended.`,
        'Look whether its programs are still those of its image. Stop the database and start it: that brings them back.',
      )
    if (size <= OUTPUT_LIMIT_BYTES) kept.push(Buffer.from(chunk))
  }
  return Buffer.concat(kept).toString('utf8')
}

/** Runs a command inside a container and answers how it ended. */
export async function runInside(
  engine: Engine,
  instance_id: string,
  command: ContainerCommand,
  streams: CommandStreams,
  signal: AbortSignal,
): Promise<CommandResult> {
  const process = await engine.exec(instance_id, { command: command.argv, environment: command.env }, signal)
  const input =
    streams.stdin ?? Readable.from(command.stdin === undefined ? [] : [Buffer.from(command.stdin)])
  let broken: Error | undefined
  input.once('error', (error: Error) => {
    broken = error
    process.stdout.destroy(error)
  })
  // A command that ends early closes its input; how it ended tells more than the broken pipe.
  const written = pipeline(input, process.stdin, { signal }).catch(() => undefined)
  const read = streams.stdout
    ? pipeline(process.stdout, streams.stdout, { signal }).then(() => '')
    : beginningOf(process.stdout as AsyncIterable<Buffer>, command.argv[0])
  try {
    const [result, output] = await Promise.all([process.done, read])
    await written
    return { ...result, output }
  } catch (error) {
    // What broke first is what the others broke of.
    throw broken ?? error
  }
}

/** Runs a command of the descriptor that must succeed; throws what it said, with a hint. Answers what it printed. */
export async function requireSuccess(
  instance: DatabaseInstance,
  command: ContainerCommand,
  signal: AbortSignal,
  streams: CommandStreams = {},
  hint = 'Look at the log of the database.',
): Promise<string> {
  const result = await instance.run(command, streams, signal)
  if (result.exit_code === 0) return result.output
  const said = lastWords(result.stderr, instance)
  if (NO_SPACE.test(result.stderr))
    throw new Fatal('disk_full', 'The disk of this server is full.', 'Free space, then try again.', said)
  const locked = command.locked?.exec(said.join('\n'))?.[1]
  if (locked !== undefined)
    throw new Fatal(
      'command_failed',
      `${command.argv[0]} could not read ${locked.slice(0, MOST_NAMES)}: a transaction of the database keeps it locked.`,
      'End the transaction that holds the lock, then try again.',
      said,
    )
  const reason = tellingLine(linesOf(result.stderr, instance)) ?? said.at(-1)
  throw new Fatal(
    'command_failed',
    `${command.argv[0]} ended with exit code ${result.exit_code}${reason === undefined ? '.' : `: ${reason.slice(0, MOST_SAID)}`}`,
    hint,
    said,
  )
}

/** Whether a command succeeds; it does not where its server has ended, either. */
export async function succeeds(
  instance: DatabaseInstance,
  command: ContainerCommand,
  signal: AbortSignal,
  streams: CommandStreams = {},
): Promise<boolean> {
  try {
    return (await instance.run(command, streams, signal)).exit_code === 0
  } catch (error) {
    if (signal.aborted) throw error
    return false
  }
}

/** How often a server that took a connection is asked whether it takes commands, too. */
const ASKS = 100

/**
 * A command that is begun now and waits, without any work, until `awaited` comes and then until its
 * server takes commands: a shell that reads one line before it becomes the command. Where that line
 * never comes, its input ends, and it with that.
 */
export function heldBack(
  { argv, env, stdin = '' }: ContainerCommand,
  probe: ContainerCommand,
  awaited: Promise<unknown>,
): { command: ContainerCommand; input: Readable } {
  async function* lines() {
    await awaited
    yield Buffer.from(`\n${stdin}`)
  }
  const asking = `${probe.argv.map(shellWord).join(' ')} < /dev/null > /dev/null 2>&1`
  const script = `read -r _ || exit; n=0; until ${asking} || [ $n = ${ASKS} ]; do n=$((n+1)); sleep 0.02; done; exec "$@"`
  return {
    command: { argv: ['sh', '-c', script, 'sh', ...argv], env: { ...probe.env, ...env } },
    input: Readable.from(lines()),
  }
}

type Secretive = Pick<DatabaseInstance, 'credentials'>
/** What something printed, without passwords. */
function linesOf(text: string, { credentials }: Secretive): string[] {
  const redact = redactor([credentials.password, credentials.admin_password])
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map(redact)
}
/** The end of it. */
export const lastWords = (text: string, of: Secretive): string[] => linesOf(text, of).slice(-LAST_LINES)
/** The first line that names a reason; behind it come hints and the whole statement. */
export const tellingLine = (lines: readonly string[]): string | undefined =>
  lines
    .find((line) => TELLING.test(line))
    ?.trim()
    .slice(0, MOST_SAID)

/** A dump as it is written. */
export const dumpStream = (instance: DatabaseInstance, signal: AbortSignal): Readable =>
  outputOf(instance, instance.engine.dump.command(instance.credentials), signal)

/**
 * What a command prints, as it prints it. It ends only once the command has ended well: what breaks
 * off never looks like something whole.
 */
export function outputOf(
  instance: DatabaseInstance,
  command: ContainerCommand,
  signal: AbortSignal,
): Readable {
  const written = new PassThrough()
  const whole = new PassThrough()
  written.pipe(whole, { end: false })
  written.once('error', (error) => whole.destroy(error))
  whole.once('close', () => written.destroy())
  const finished = once(written, 'end')
  finished.catch(() => {})
  const [program = ''] = command.argv
  const limited = command.is_quiet ? signal : untilSilent(program, { printed: written, whole }, signal)
  requireSuccess(instance, command, limited, { stdout: written })
    .then(() => finished)
    .then(
      () => whole.end(),
      (error: Error) => whole.destroy(error),
    )
  return whole
}
