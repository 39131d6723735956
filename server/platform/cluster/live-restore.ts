import type { Run } from '#server/kernel/process'
import { ClusterError } from './cluster.ts'
import { output } from './remote-run.ts'

const DEFAULT_FILE = '/etc/docker/daemon.json'
const KEY = 'live-restore'

/** The file beside the settings that says that they were changed: a join that failed half-way has no other. */
const noteOf = (file: string): string => `${file}.portreeve`

/** The arguments of the engine, and the file of its settings. */
async function settingsOf(run: Run, pid: number): Promise<{ args: string[]; file: string }> {
  const args = (await output(run, ['cat', `/proc/${pid}/cmdline`])).split('\0')
  const at = args.findIndex((arg) => /^--config-file(=|$)/.test(arg))
  const named = at < 0 ? '' : (args[at]!.split('=')[1] ?? args[at + 1] ?? '')
  return { args, file: named || DEFAULT_FILE }
}

/** Whether it was on before this turned it off, as the machine itself knows. */
export async function wasTurnedOff(run: Run, pid: number): Promise<boolean> {
  const { file } = await settingsOf(run, pid)
  return (await run(['test', '-e', noteOf(file)], { cwd: '/' })).exit_code === 0
}

/**
 * Whether containers of an engine run on while it restarts: a setting that excludes a cluster. It is changed in the
 * engine's file and read anew, without a restart; a key that is left out keeps what was set before.
 * @param pid of the engine.
 */
export async function setLiveRestore(run: Run, pid: number, is_on: boolean): Promise<void> {
  const { args, file } = await settingsOf(run, pid)
  if (args.some((arg) => arg === `--${KEY}` || arg === `--${KEY}=true`))
    throw new ClusterError(
      'unsuited',
      'The container engine is started with --live-restore, which excludes a cluster.',
      {
        hint: 'Take the option out of its unit, restart it, then try again.',
      },
    )
  const { stdout } = await run(['cat', file], { cwd: '/' })
  let settings: Record<string, unknown>
  try {
    settings = JSON.parse(stdout.trim() || '{}') as Record<string, unknown>
  } catch (cause) {
    throw new ClusterError('unsuited', `The settings of the container engine in ${file} cannot be read.`, {
      cause,
    })
  }
  const text = `${JSON.stringify({ ...settings, [KEY]: is_on }, undefined, 2)}\n`
  if (!is_on)
    await output(run, ['tee', noteOf(file)], { stdin: `${KEY} was on before this server joined.\n` })
  await output(run, ['tee', file], { stdin: text })
  await output(run, ['kill', '-HUP', String(pid)])
  if (is_on) await output(run, ['rm', '-f', noteOf(file)])
}
