import { PassThrough } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import type { FakeBehaviour } from './behaviour.ts'
import { aborted } from '../failures.ts'
import type { ContainerSpec, ExecProcess, ExecResult, ExecSpec } from '../workload.ts'

/** Pretends to run a command inside an instance: takes its input to the end, then prints and ends. */
export function execFake(
  behaviour: FakeBehaviour,
  spec: ExecSpec,
  container: ContainerSpec,
  signal: AbortSignal,
): ExecProcess {
  const stdin = new PassThrough()
  const stdout = new PassThrough()
  stdin.on('error', () => {})
  stdout.on('error', () => {})
  const cancelled = new Promise<never>((_, reject) => {
    const cut = () => reject(aborted('The command'))
    if (signal.aborted) cut()
    else signal.addEventListener('abort', cut, { once: true })
  })
  const running = async (): Promise<ExecResult> => {
    const input = await buffer(stdin)
    const outcome = (await behaviour.exec?.(spec, input, container)) ?? { stdout: input }
    if (outcome.hang) return cancelled
    stdout.end(outcome.stdout ?? '')
    return { exit_code: outcome.exit_code ?? 0, stderr: outcome.stderr ?? '' }
  }
  const done = Promise.race([running(), cancelled])
  done.catch((error: Error) => {
    stdin.destroy()
    stdout.destroy(error)
  })
  return { stdin, stdout, done }
}
