import type { Actor } from '#server/kernel/access'
import { inMilliseconds } from '#server/kernel/clock'
import { conflict } from '#server/kernel/errors'
import { redactor, redactorSoon } from '#server/kernel/redact'
import { askingEngine } from '#server/platform/engine/asking'
import type { Instance, RunResult } from '#server/platform/engine/engine'
import { networkOf } from '#server/platform/engine/network-name'
import { LOCAL } from '#server/platform/engine/workload'
import type { LogLine } from '#server/runtime-logs/schema'
import { isOf } from './processes.ts'
import { createAskedCommands } from './commands.ts'
import { containerSpec, mainLimits } from './release-workload.ts'
import { toldCommand } from './told-command.ts'
import { secretsOfApp, secretsOfAppSoon, type DeployContext } from './work.ts'
import { newId } from '#server/kernel/ids'

const MAX_OUTPUT = 1_048_576

export interface RuntimeLogQuery {
  tail: number
  since?: string
  until?: string
  q?: string
  /** Only instances of this process. */
  process?: string
}

function healthOf({ state }: Instance, live: boolean): 'healthy' | 'starting' | 'unhealthy' | 'stopped' {
  if (state === 'running') return live ? 'healthy' : 'starting'
  return state === 'restarting' ? 'unhealthy' : 'stopped'
}

/** What runs of an app now: instances, their logs, and one-off commands beside them. */
export function createRuntime(context: DeployContext) {
  const { engine, releases, clock, commands } = context
  const app = (id: string) => context.apps.get(id)
  const secretsOf = (app_id: string): string[] => secretsOfApp(context, app_id)
  const secretsSoon = (app_id: string): Promise<string[]> => secretsOfAppSoon(context, app_id)
  const asked = createAskedCommands()
  /** The same for other domains, which take errors of the engine as they are; lines come without secrets. */
  const runCommand = async (
    app_id: string,
    requested: {
      command: string | string[]
      purpose: string
      timeout_ms: number
      onLine(text: string): void
    },
    signal: AbortSignal,
  ): Promise<RunResult> => {
    const place = app(app_id)
    const { live_release_id, project_id } = place
    const release = live_release_id ? releases.find(live_release_id) : undefined
    if (!release)
      throw conflict('This app has never been live, so there is no image to run a command in. Deploy it.')
    const redact = await redactorSoon(await secretsSoon(app_id))
    const { command, purpose, timeout_ms, onLine } = requested
    const { shell_command: _own, ...spec } = containerSpec(releases, release, place)
    const alone = context.apps.beyond(app_id, spec.limits)
    return commands.run(project_id, spec.limits, alone, async () => {
      await engine.ensureNetwork(networkOf(place), { project: project_id })
      return engine.runOnce(
        {
          ...spec,
          ...(typeof command === 'string' ? { shell_command: command } : { command }),
          purpose,
          timeout_ms,
          onLog: (line) => onLine(redact(line.text)),
        },
        signal,
      )
    })
  }

  return {
    instances: (app_id: string) =>
      askingEngine(async () => {
        const live = releases.find(app(app_id).live_release_id ?? '')
        const found = await engine.instances({ owner: { kind: 'app', id: app_id } })
        return found.map((instance) => ({
          id: instance.id,
          process: instance.process,
          index: instance.index,
          node: instance.node ?? LOCAL,
          deployment_id: releases.find(instance.release_id)?.deployment_id ?? null,
          state: instance.state,
          health: healthOf(instance, live !== undefined && isOf(live)(instance)),
          image: instance.image,
          address: instance.address ?? null,
          restart_count: instance.restart_count,
          exit_code: instance.exit_code ?? null,
          started_at: instance.started_at ? inMilliseconds(instance.started_at) : null,
          uptime_s:
            instance.state === 'running' && instance.started_at
              ? Math.max(0, Math.floor((clock.now() - Date.parse(instance.started_at)) / 1000))
              : 0,
        }))
      }),
    /** Lines of the build and release log in the shape of runtime lines. */
    async buildLogs(app_id: string, query: RuntimeLogQuery): Promise<LogLine[]> {
      const latest = context.deployments.latest(app_id)
      const lines = latest ? await context.logs.read(latest.id) : []
      const desired = query.q?.toLowerCase()
      return lines
        .filter(
          (line) =>
            (!query.since || line.at >= query.since) &&
            (!query.until || line.at < query.until) &&
            (!desired || line.text.toLowerCase().includes(desired)),
        )
        .slice(-query.tail)
    },
    /** Runs one command in a fresh container of the live release and waits for its end. */
    exec: (
      actor: Pick<Actor, 'user_id'>,
      app_id: string,
      { command, timeout_s }: { command: string | string[]; timeout_s: number },
      signal: AbortSignal,
    ) =>
      askingEngine(async () => {
        let output = ''
        let truncated = false
        const requested = {
          command,
          purpose: `exec-${newId('run').slice(4, 12)}`,
          timeout_ms: timeout_s * 1000,
          onLine(text: string) {
            if (output.length < MAX_OUTPUT) output += `${text}\n`
            else truncated = true
          },
        }
        const result = await asked.run(actor.user_id, app(app_id).project_id, () =>
          runCommand(app_id, requested, signal),
        )
        return {
          exit_code: result.timed_out ? null : result.exit_code,
          output: output.slice(0, MAX_OUTPUT),
          truncated,
          timed_out: result.timed_out,
          duration_ms: result.duration_ms,
        }
      }),
    /** A command of an app as others may read it. */
    toldCommand: async (app_id: string, command: string | readonly string[]) =>
      toldCommand(command, await redactorSoon(await secretsSoon(app_id))),
    /** Values that no log of the app may show. */
    secretsOf,
    secretsSoon,
    runCommand,
    /** Whether a command of an app has no room in the quotas of its project until others have ended. */
    hasToWait(app_id: string): boolean {
      const { live_release_id, project_id } = app(app_id)
      const release = releases.find(live_release_id ?? '')
      if (!release) return false
      const share = mainLimits(release.settings)
      return commands.hasToWait(project_id, share, context.apps.beyond(app_id, share))
    },
    /** What commands of a project may use together now. */
    shareIn: commands.shareIn,
    /** Removes a command that a process which is gone has left running. */
    removeCommand: (purpose: string) => engine.removeLabelled({ run: purpose }),
    /** A text of an app without its secrets. */
    redact: (app_id: string, text: string): string => redactor(secretsOf(app_id))(text),
    /** The same, with others served while it is worked out what the secrets are. */
    redactSoon: async (app_id: string, text: string): Promise<string> =>
      (await redactorSoon(await secretsSoon(app_id)))(text),
  }
}
export type Runtime = ReturnType<typeof createRuntime>
