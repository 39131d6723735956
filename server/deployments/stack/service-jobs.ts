import { defineJob, type JobDefinition } from '#server/kernel/jobs/definition'
import { redactor } from '#server/kernel/redact'
import { classify } from '../classify.ts'
import { instancesOfRelease, processesOf } from '../processes.ts'
import { ensureNetworks, workloadOf } from '../release-workload.ts'
import type { Release } from '../releases.ts'
import { drain, routeTo } from '../serving.ts'
import { verify } from '../verify.ts'
import { secretsOfApp, targetOf, type Workshop } from '../work.ts'
import { endRelease, superviseAll } from './ending.ts'

export interface ServicePayload {
  app_id: string
  project_id: string
  /** Name of the service. */
  service: string
}

/** Starts and stops single services of what is live of a compose app. */
export function serviceJobs(shop: Workshop): JobDefinition<ServicePayload, object>[] {
  const live = (app_id: string): Release | undefined =>
    shop.releases.find(shop.ports.app(app_id).live_release_id ?? '')
  const shared = {
    initial: () => ({}),
    classify,
    redact: ({ subject }: { subject: string }, text: string): string =>
      shop.ports.projectOf(subject) === undefined ? text : redactor(secretsOfApp(shop, subject))(text),
  }
  return [
    defineJob<ServicePayload, object>({
      ...shared,
      kind: 'service.stop',
      steps: [
        {
          name: 'stop',
          irrevocable: true,
          async run({ payload, signal }) {
            const release = live(payload.app_id)
            if (!release) return
            const only = new Set([payload.service])
            const others = (await instancesOfRelease(shop.engine, release)).filter(
              ({ process }) => process !== payload.service,
            )
            await shop.routing.serve(payload.app_id, targetOf(others, release.settings))
            await drain(shop, release, signal, only)
            await endRelease(shop.engine, release, undefined, only)
          },
        },
      ],
    }),
    defineJob<ServicePayload, object>({
      ...shared,
      kind: 'service.start',
      steps: [
        {
          name: 'start',
          async run({ payload, signal }) {
            const release = live(payload.app_id)
            const process =
              release && processesOf(release.settings).find(({ name }) => name === payload.service)
            if (!release || !process) return
            const app = shop.ports.app(payload.app_id)
            await ensureNetworks(shop.engine, release, app)
            await shop.engine.ensureRelease(workloadOf(shop.releases, release, app, process), signal)
            const { deployment_id } = release
            const only = new Set([payload.service])
            await verify(shop, { release, deployment_id, step: 'start', only }, signal)
          },
        },
        {
          name: 'switch',
          irrevocable: true,
          async run({ payload }) {
            const release = live(payload.app_id)
            if (!release) return
            await routeTo(shop, payload.app_id, release)
            await superviseAll(shop.engine, release, true)
          },
        },
      ],
    }),
  ]
}
