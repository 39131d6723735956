import { defineJob, type JobDefinition } from '#server/kernel/jobs/definition'
import { redactor } from '#server/kernel/redact'
import { classify } from '../classify.ts'
import { instancesOfRelease, processesOf } from '../processes.ts'
import { ensureNetworks, workloadOf } from '../release-workload.ts'
import type { Release } from '../releases.ts'
import { drain, routeTo } from '../serving.ts'
import { verify } from '../verify.ts'
import { secretsOfJobs, targetOf, type DeployContext } from '../work.ts'
import { endRelease, superviseAll } from './ending.ts'

export interface ServicePayload {
  app_id: string
  project_id: string
  /** Name of the service. */
  service: string
}

/** Starts and stops single services of what is live of a compose app. */
export function serviceJobs(context: DeployContext): JobDefinition<ServicePayload, object>[] {
  const live = (app_id: string): Release | undefined =>
    context.releases.find(context.apps.get(app_id).live_release_id ?? '')
  const shared = {
    initial: () => ({}),
    classify,
    redact: ({ subject }: { subject: string }, text: string): string =>
      context.apps.projectOf(subject) === undefined ? text : redactor(secretsOfJobs(context, subject))(text),
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
            const others = (await instancesOfRelease(context.engine, release)).filter(
              ({ process }) => process !== payload.service,
            )
            await context.routing.serve(payload.app_id, targetOf(others, release.settings))
            await drain(context, release, signal, only)
            await endRelease(context.engine, release, undefined, only)
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
            const app = context.apps.get(payload.app_id)
            await ensureNetworks(context.engine, release, app)
            await context.engine.ensureRelease(workloadOf(context.releases, release, app, process), signal)
            const { deployment_id } = release
            const only = new Set([payload.service])
            await verify(context, { release, deployment_id, step: 'start', only }, signal)
          },
        },
        {
          name: 'switch',
          irrevocable: true,
          async run({ payload }) {
            const release = live(payload.app_id)
            if (!release) return
            await routeTo(context, payload.app_id, release)
            await superviseAll(context.engine, release, true)
          },
        },
      ],
    }),
  ]
}
