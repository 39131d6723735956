import { CommandError, plain } from '../../terminal.ts'
import { dataOf } from '../api.ts'
import { appId } from '../apps.ts'
import { defineClientVerb, withApp } from '../client-verb.ts'
import { EXIT } from '../exit-codes.ts'
import { untilInterrupted } from '../live.ts'
import { wholeNumber } from '../option-values.ts'
import { show } from '../output.ts'
import { type ClientOptions, openSession } from '../session.ts'

/** As `timeout` of coreutils ends. */
const TIMED_OUT = 124

async function exec(
  command: string[],
  options: ClientOptions & { app?: string; timeout: number },
): Promise<void> {
  const session = await openSession(options)
  const id = await appId(session, options.app)
  const stop = untilInterrupted()
  const { data } = await dataOf(
    session.api.POST('/api/apps/{id}/exec', {
      params: { path: { id } },
      body: { command, timeout_s: options.timeout },
      signal: stop.signal,
    }),
  ).catch((error: unknown) => {
    if (!stop.signal.aborted) throw error
    throw new CommandError(
      `The command goes on in its container, for ${options.timeout} s in all at most.`,
      EXIT.INTERRUPTED,
    )
  })
  if (options.json) show(options, data, () => '')
  else process.stdout.write(plain(data.output))
  if (data.timed_out) process.stderr.write(`portreeve: stopped after ${options.timeout} s.\n`)
  process.exitCode = data.exit_code ?? TIMED_OUT
}

export default defineClientVerb((verb) => {
  withApp(
    verb
      .description(
        'Runs a command in the image and environment of an app, beside it, and ends with its exit code. Nothing is typed into it.',
      )
      .argument('<command...>', 'program and its arguments; no shell reads them')
      .usage('[options] -- <command...>')
      .passThroughOptions(),
  )
    .option('-t, --timeout <seconds>', 'time after which it is stopped', wholeNumber, 60)
    .action(exec)
})
