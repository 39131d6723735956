import type { Services } from '#server/modules'

let current: Services | undefined

/** The services of this process once they are up; for tasks, which no request hands them to. */
export const runningServices = (): Services | undefined => current

/** Called by the boot plugin, and with nothing when the process ends. */
export function setRunningServices(services: Services | undefined): void {
  current = services
}
