import { dataOf } from '../api.ts'
import { appId } from '../apps.ts'
import { defineClientVerb } from '../client-verb.ts'
import { finishDeployment } from '../finish-deployment.ts'
import { type ClientOptions, openSession } from '../session.ts'

async function rollback(
  name: string | undefined,
  options: ClientOptions & { to?: string; wait: boolean },
): Promise<void> {
  const session = await openSession(options)
  const id = await appId(session, name)
  const body = options.to === undefined ? {} : { deployment_id: options.to }
  const { data } = await dataOf(
    session.api.POST('/api/apps/{id}/rollback', { params: { path: { id } }, body }),
  )
  await finishDeployment(session, data.id, options)
}

export default defineClientVerb((verb) => {
  verb
    .description('Brings an earlier release back, without building it, and stops deploying pushes.')
    .argument('[app]', 'name or id (default: PORTREEVE_APP, else the name of this folder)')
    .option('--to <deployment>', 'id of the deployment to bring back (default: the one before the live one)')
    .option('--no-wait', 'do not wait until it serves')
    .action(rollback)
})
