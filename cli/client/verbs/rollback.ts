import { dataOf } from '../api.ts'
import { type AppOption, appId, namedApp } from '../apps.ts'
import { defineClientVerb, withNamedApp } from '../client-verb.ts'
import { finishDeployment } from '../finish-deployment.ts'
import { type ClientOptions, openSession } from '../session.ts'

async function rollback(
  argument: string | undefined,
  options: ClientOptions & AppOption & { to?: string; wait: boolean },
): Promise<void> {
  const name = namedApp(argument, options)
  const session = await openSession(options)
  const id = await appId(session, name)
  const body = options.to === undefined ? {} : { deployment_id: options.to }
  const { data } = await dataOf(
    session.api.POST('/api/apps/{id}/rollback', { params: { path: { id } }, body }),
  )
  await finishDeployment(session, data.id, options)
}

export default defineClientVerb((verb) => {
  withNamedApp(verb)
    .description('Brings an earlier release back, without building it, and stops deploying pushes.')
    .option('--to <deployment>', 'id of the deployment to bring back (default: the one before the live one)')
    .option('--no-wait', 'do not wait until it serves')
    .action(rollback)
})
