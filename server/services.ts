import type { Config } from '#server/kernel/config'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { createEvents, type Events } from '#server/kernel/events'
import { createJobs, type Jobs } from '#server/kernel/jobs/jobs'
import type { Log } from '#server/kernel/log'
import type { Secrets } from '#server/kernel/secrets'
import type { HttpPorts } from '#server/http/context'
import type { Engine } from '#server/platform/engine/engine'
import type { Git } from '#server/platform/git/git'
import type { Ingress } from '#server/platform/ingress/ingress'

/** What every domain stands on. */
export interface Kernel { config: Config; db: Db; clock: Clock; log: Log; secrets: Secrets }

/** The outside world; real ones are chosen in `plugins/boot.ts`, fake ones in tests. */
export interface Adapters { engine: Engine; git: Git; ingress: Ingress }

/** The composed product: what routes, the WebSocket and tasks call. */
export interface Services extends HttpPorts {
  kernel: Kernel
  events: Events
  jobs: Jobs
}
