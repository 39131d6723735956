import { type Actor, isAdministrator } from '#server/kernel/access'
import type { Config } from '#server/kernel/config'
import type { Log } from '#server/kernel/log'
import type { createMeta } from '#server/kernel/meta'
import type { Door } from '#server/platform/door'

/** Key of the dashboard domain under which an administrator was seen. */
export const REACHED_KEY = 'dashboard_reached_at'
const RETRY_MS = 5_000

export interface FrontDoorOptions {
  /** None where the server listens on a socket in a folder. */
  door: Door | undefined
  config: Pick<Config, 'host_is_chosen' | 'port'>
  log: Log
  meta: Pick<ReturnType<typeof createMeta>, 'get' | 'set'>
  /** The dashboard's domain of the settings; null for none. */
  hostname(): string | null
}
/**
 * Who may reach the plain port. Once the dashboard's domain serves, nobody outside of this machine needs it. That it
 * serves is not guessed from names and certificates: an administrator has come in through the edge, over HTTPS,
 * under that very name. So whoever could take a wrong domain back still can, and a wrong one closes nothing.
 */
export interface FrontDoor {
  /** Hears of requests through the edge. */
  cameIn(hostname: string, actor: Actor): void
  /** Listens where the settings and what was seen say, in the background; tried again until it does. */
  applySoon(): void
  stop(): void
}

export function createFrontDoor({ door, config, log, meta, hostname }: FrontDoorOptions): FrontDoor {
  let reached: string | undefined
  let desired = false
  let is_stopped = false
  const remember = (name: string) => {
    if (name === reached) return
    reached = name
    meta.set(REACHED_KEY, name)
  }
  const applySoon = () => {
    if (!door || config.host_is_chosen || is_stopped) return
    reached ??= meta.get(REACHED_KEY) ?? ''
    const narrow = reached !== '' && hostname() === reached
    // A name that was given up and is set again has to be seen again.
    if (!narrow) remember('')
    if (narrow === desired) return
    desired = narrow
    door.set(narrow).then(
      () =>
        log.info(
          narrow
            ? 'The dashboard domain serves, so the plain port is reached from this machine only'
            : 'The plain port is reached from everywhere, until the dashboard domain serves',
          { port: config.port },
        ),
      (error: Error) => {
        desired = door.is_narrow
        log.warn('The plain port stays where it is for now', { reason: error.message })
        setTimeout(applySoon, RETRY_MS).unref()
      },
    )
  }
  return {
    cameIn(name, actor) {
      if (name === reached || name !== hostname() || !isAdministrator(actor)) return
      remember(name)
      applySoon()
    },
    applySoon,
    stop() {
      is_stopped = true
    },
  }
}
