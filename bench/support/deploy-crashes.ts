import { setTimeout as delay } from 'node:timers/promises'
import { eventually, type Portreeve } from '#test/support/portreeve'
import { leftovers } from './leftovers.ts'
import { type StagedApp, startDeployment } from './stage.ts'
import type { Sweep } from './sweep.ts'

export interface DeployCrashes {
  portreeve: Portreeve
  sweep: Sweep
  app: StagedApp
  /** Files that answer with a version at `/`. */
  filesOf: (version: string) => Record<string, string>
  /** Services of a stack; an app that is none runs in one container. */
  services?: number
  /** Milliseconds after a deployment was asked for within which a random kill falls. */
  window_ms: number
  /** Time for what follows a job, such as the removal of what nobody owns. */
  settle_ms: number
  /** Looks at more than what is served: what is wrong, as sentences. */
  alsoWrong?: (served: string) => string[]
}

/** Kills in the middle of deployments and rollbacks of one app; each must end live, clean and with its version. */
export function createDeployCrashes(given: DeployCrashes) {
  const { portreeve, app, services, settle_ms } = given
  const { faults, recoveries, dieAt, ended } = given.sweep

  /** Pushes a commit that answers something new; returns what. */
  function change(): string {
    const version = `${app.name} ${performance.now()}`
    app.repository.commit(given.filesOf(version), version)
    return version
  }
  async function judge(deployment_id: string, what: string, version: string | undefined): Promise<void> {
    const { status, error } = await portreeve.untilDeployment(deployment_id)
    ended()
    if (status !== 'live') faults.push(`${what}: the deployment is ${status}: ${JSON.stringify(error)}`)
    let last: string[] = []
    await eventually(
      'Everything being cleared',
      async () => {
        last = await leftovers(portreeve, app.id, services)
        return last.length === 0 ? true : undefined
      },
      settle_ms,
    ).catch(() => faults.push(`${what}: ${last.join('; ')}`))
    const served = (await portreeve.visit(app.host)).body.trim()
    if (version !== undefined && served !== version)
      faults.push(`${what}: «${served}» serves instead of «${version}»`)
    faults.push(...(given.alsoWrong?.(served) ?? []).map((fault) => `${what}: ${fault}`))
  }
  return {
    change,
    /** Portreeve dies at a point of a deployment or rollback. */
    async at(point: string, verb: 'deploy' | 'rollback'): Promise<void> {
      const version = verb === 'deploy' ? change() : undefined
      await dieAt(portreeve, point, () => startDeployment(portreeve, app.id, verb))
      const { body } = await portreeve.call('GET', `/api/apps/${app.id}`)
      await judge(body.data.latest_deployment.id, `${verb} ${point}`, version)
    },
    /** Portreeve is killed at a random time after a deployment was accepted. */
    async anytime(round: number): Promise<void> {
      const version = change()
      const id = await startDeployment(portreeve, app.id)
      const after_ms = Math.round(Math.random() * given.window_ms)
      await delay(after_ms)
      await portreeve.kill()
      recoveries.push(-performance.now())
      await portreeve.start()
      await judge(id, `random kill ${round} after ${after_ms} ms`, version)
    },
  }
}
