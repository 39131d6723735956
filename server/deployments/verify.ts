import { setTimeout as wait } from 'node:timers/promises'
import { Fatal } from '#server/kernel/jobs/definition'
import type { Instance } from '#server/platform/engine/engine'
import { knownReason } from '#server/platform/engine/build/known-reasons'
import { unstartable } from '#server/platform/engine/containers/start-failure'
import { missingProgram, tellingLines } from '#server/platform/engine/build/telling-lines'
import { MAIN_PROCESS } from '#server/platform/engine/workload'
import { instancesOfRelease, processesOf } from './processes.ts'
import { elsewhere, listeningOf } from './listening.ts'
import { waitUntilReady } from './probe.ts'
import type { Release } from './releases.ts'
import { waitForService } from './stack/ready.ts'
import { openedService } from './stack/words.ts'
import type { DeployContext } from './work.ts'

const TAIL = 30

/** Last lines that an instance printed; also put into the deployment's log. */
export async function lastLines(
  context: DeployContext,
  deployment_id: string,
  step: string,
  instance: Instance,
): Promise<string[]> {
  const lines: string[] = []
  try {
    for await (const line of context.engine.logs(instance.id, { tail: TAIL })) {
      context.logs.append(deployment_id, step, line.stream, line.text)
      lines.push(line.text)
    }
  } catch (error) {
    context.log.debug('The log of an instance cannot be read', { instance: instance.id, error })
  }
  return tellingLines(lines)
}

/** The sentence for a container that ended by itself. */
export async function exited(
  context: DeployContext,
  told: { deployment_id: string; step: string; release: Release },
  instance: Instance,
  when: string,
): Promise<Fatal> {
  const log = await lastLines(context, told.deployment_id, told.step, instance)
  if (instance.oom_killed)
    return new Fatal(
      'out_of_memory',
      `The app was ended ${when} because it used more memory than its limit.`,
      'Raise limits.memory_bytes of the app, or make it use less.',
      log,
    )
  const refused = unstartable(instance.exit_code, log)
  if (refused) return new Fatal(refused.code, refused.message, refused.hint ?? null, log)
  const { process } = instance
  const code = instance.exit_code ?? 1
  const is_service = told.release.settings.stack !== undefined
  if (code === 0) return is_service ? serviceEnded(process, when, log) : endedByItself(process, when, log)
  const named = nameOf(process, is_service)
  const missing = code === NOT_FOUND ? missingProgram(log) : undefined
  if (missing !== undefined)
    return new Fatal(
      'exited',
      `The program \`${missing}\` does not exist in the image: ${lowered(named)} exited with code ${NOT_FOUND} ${when}.`,
      'Add the package that brings it to the dependencies of the project, or correct the start command.',
      log,
    )
  return new Fatal(
    'exited',
    `${named} exited with code ${code} ${when}.`,
    knownReason(log, 'run') ?? 'Its last lines are in the log.',
    log,
  )
}

/** What a shell ends with for a program that it does not find. */
const NOT_FOUND = 127
const lowered = (text: string) => text.charAt(0).toLowerCase() + text.slice(1)

function nameOf(process: string, is_service: boolean): string {
  if (is_service) return `The service ${process}`
  return process === MAIN_PROCESS ? 'The app' : `The process ${process} of the app`
}

/** The same of a service of a compose file: Compose leaves what nothing starts again as it is. */
const serviceEnded = (service: string, when: string, log: string[]): Fatal =>
  new Fatal(
    'exited',
    `The service ${service} exited with code 0 ${when}: it ends by itself.`,
    'Write `restart: "no"` at a service that is to run once to its end, or have others wait for it with `condition: service_completed_successfully`. Any other must keep running in the foreground.',
    log,
  )

/** The sentence for a program that did what it does and ended, where one was meant to stay. */
function endedByItself(process: string, when: string, log: string[]): Fatal {
  if (process !== MAIN_PROCESS)
    return new Fatal(
      'exited',
      `The process ${process} of the app exited with code 0 ${when}: it ends by itself.`,
      `A process must keep running in the foreground. Set processes.${process}.replicas to 0 for a command that is run by hand, or make a cron job of one that runs on a schedule.`,
      log,
    )
  return new Fatal(
    'exited',
    `The app exited with code 0 ${when}: it is a script that ends by itself, not a server.`,
    'Make a cron job of a script that runs on a schedule, or run it by exec in an app that stays. A web app must keep running in the foreground: look at its start command. For a worker that waits for work and takes no requests, set processes.',
    log,
  )
}

const ENDED: readonly Instance['state'][] = ['exited', 'dead', 'restarting']

/**
 * An instance that has ended, if there is one; asks the engine until `signal` aborts, at first about those
 * that are `known`.
 */
export async function firstExit(
  context: DeployContext,
  release: Release,
  signal: AbortSignal,
  { known, only }: { known?: Instance[]; only?: ReadonlySet<string> } = {},
): Promise<Instance | undefined> {
  const isAsked = ({ process }: { process: string }) => !only || only.has(process)
  const expected = processesOf(release.settings)
    .filter(({ name }) => isAsked({ process: name }))
    .reduce((sum, { replicas }) => sum + replicas, 0)
  for (let instances = known; !signal.aborted; instances = undefined) {
    instances ??= (await instancesOfRelease(context.engine, release)).filter(isAsked)
    const ended = instances.find((instance) => ENDED.includes(instance.state) || instance.oom_killed)
    if (ended) return ended
    if (instances.length < expected)
      throw new Fatal('instance_gone', 'An instance of the release was removed from outside.', 'Try again.')
    await new Promise<void>((resolve) => {
      const timer = setTimeout(done, 400)
      function done() {
        clearTimeout(timer)
        signal.removeEventListener('abort', done)
        resolve()
      }
      signal.addEventListener('abort', done, { once: true })
    })
  }
  return undefined
}

/**
 * Probes every instance of a release from outside; fails with the reason when one ends, is gone or never
 * becomes ready.
 * @param told the deployment in whose log their last lines are put, and the step that they are put under.
 */
export async function verify(
  context: DeployContext,
  {
    release,
    only,
    ...told
  }: { release: Release; deployment_id: string; step: string; only?: ReadonlySet<string> },
  signal: AbortSignal,
): Promise<void> {
  const { settings } = release
  const all = await instancesOfRelease(context.engine, release)
  const instances = all.filter(({ process }) => !only || only.has(process))
  const ready = new AbortController()
  const probing = AbortSignal.any([signal, ready.signal])
  const watch = firstExit(context, release, probing, { known: instances, only })
  const graces = new Map(processesOf(settings).map(({ name, grace_s }) => [name, grace_s]))
  const probes = Promise.all(
    instances.map(async (instance) => {
      const grace_s = graces.get(instance.process) ?? 0
      const service = settings.stack?.find(({ name }) => name === instance.process)
      if (service) {
        const { health_check } = openedService(context.releases, release, service)
        const asked = { ...service, health_check }
        return waitForService(context, asked, instance, { settings, grace_s, signal: probing })
      }
      return instance.process === MAIN_PROCESS
        ? waitUntilReady(instance.address ?? '', settings.port, settings.health_check, probing, () =>
            context.clock.monotonic_ms(),
          )
        : staysUp(grace_s, probing)
    }),
  )
  try {
    const first = await Promise.race([watch, probes])
    if (first && !Array.isArray(first))
      throw await exited(context, { ...told, release }, first, 'before it was ready')
    const results = Array.isArray(first) ? first : await probes
    const late = results.findIndex((result) => !result.ready)
    if (late === -1) return
    throw await neverReady(context, told, {
      instance: instances[late]!,
      last: results[late]!.last,
      settings,
    })
  } finally {
    ready.abort()
    await Promise.allSettled([watch, probes])
  }
}

/** A process that nobody can ask is ready when it stays up for its grace; an exit is seen by `firstExit`. */
async function staysUp(grace_s: number, signal: AbortSignal): Promise<{ ready: boolean; last: string }> {
  await wait(grace_s * 1000, undefined, { signal }).catch(() => undefined)
  return { ready: true, last: '' }
}

async function neverReady(
  context: DeployContext,
  told: { deployment_id: string; step: string },
  { instance, last, settings }: { instance: Instance; last: string; settings: Release['settings'] },
): Promise<Fatal> {
  const service = settings.stack?.find(({ name }) => name === instance.process)
  const log_of_service = service && (await lastLines(context, told.deployment_id, told.step, instance))
  if (service)
    return new Fatal(
      'not_ready',
      `The service ${service.name} did not become ready: ${last}.`,
      service.public_port === null
        ? 'Look at its log and at its health check.'
        : `It must listen on 0.0.0.0:${service.public_port}.`,
      log_of_service,
    )
  const { port, health_check } = settings
  const image = await context.engine.findImage(instance.image)
  const seen =
    last === 'nothing listens'
      ? elsewhere(await listeningOf(context.engine, instance, image?.exposed_ports ?? []), port)
      : undefined
  const log = await lastLines(context, told.deployment_id, told.step, instance)
  const what = health_check.type === 'http' ? `GET ${health_check.path} on port ${port}` : `port ${port}`
  return new Fatal(
    'not_ready',
    `The app did not become ready within ${health_check.grace_s} seconds: ${seen?.last ?? `${what}: ${last}`}.`,
    seen?.hint ??
      'Listen on 0.0.0.0 and the port that the PORT variable names, or raise health_check.grace_s. For an app that takes no requests, set processes.',
    log,
  )
}
