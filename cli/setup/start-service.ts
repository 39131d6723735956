import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '#server/kernel/config'
import { type Readiness, readiness } from '../server-here.ts'
import { CommandError, createProgress } from '../terminal.ts'
import type { Service } from './service.ts'
import type { StoredSettings } from './settings-file.ts'

const READY_WITHIN_MS = 120_000
const LOOK_MS = 300
/** A server that ends this often does not start with its settings. */
const MOST_ENDS = 3

export interface Start {
  service: Service
  stored: StoredSettings
  was_running: boolean
  config: Config
  /** With the settings that are stored now. */
  configBefore(): Config
}

/**
 * What it says once it is ready, or what it said last.
 * @param ends_before how often it had ended before this start. systemd begins anew at most starts, not at all of them.
 */
async function waitUntilReady(
  service: Service,
  config: Config,
  ends_before: number,
): Promise<Readiness | undefined> {
  const progress = createProgress(process.stderr)
  const end = performance.now() + READY_WITHIN_MS
  progress.show('Waiting until Portreeve is ready.')
  let least = ends_before
  let found = await readiness(config)
  while (found?.status !== 'ok' && performance.now() < end) {
    const ends = await service.ends()
    least = Math.min(least, ends)
    if (ends - least >= MOST_ENDS) break
    await delay(LOOK_MS)
    found = await readiness(config)
  }
  progress.end()
  return found
}

/**
 * Starts the server and waits until it is ready. Settings that it does not start with are taken back, so that what
 * ran before runs on; answers whether anything was started.
 */
export async function startService(start: Start): Promise<boolean> {
  const { service, stored, was_running, config } = start
  const ends = await service.ends()
  const is_started = await service.start(stored.is_changed && was_running)
  const found = await waitUntilReady(service, config, ends)
  if (found?.status === 'ok') return is_started
  const wrong = Object.entries(found?.checks ?? {}).filter(([, { ok }]) => !ok)
  const why =
    wrong.map(([name, { message = 'not well' }]) => `${name}: ${message}`).join('; ') ||
    (await service.lastLines())
  const told = `portreeve host logs tells all that it wrote. Its last lines:\n${why}`
  if (!stored.is_changed) throw new CommandError(`Portreeve was started but is not ready. ${told}`)
  await service.stop()
  if (!stored.takeBack() || !was_running)
    throw new CommandError(
      `Portreeve did not become ready, so it was stopped again, and these settings were not kept. ${told}`,
    )
  const ends_with_these = await service.ends()
  await service.start(true)
  const before = await waitUntilReady(service, start.configBefore(), ends_with_these)
  throw new CommandError(
    before?.status === 'ok'
      ? `Portreeve did not become ready with these settings, so they were taken back: it runs as before. ${told}`
      : `Portreeve did not become ready with these settings; they were taken back, but it is not ready with those from before either. ${told}`,
  )
}
