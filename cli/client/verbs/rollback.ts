import { say } from '../../terminal.ts'
import { dataOf } from '../api.ts'
import { type AppOption, getApp, namedApp } from '../apps.ts'
import { defineClientVerb, withNamedApp } from '../client-verb.ts'
import { finishDeployment } from '../finish-deployment.ts'
import { type ClientOptions, openSession } from '../session.ts'

async function rollback(
  argument: string | undefined,
  options: ClientOptions & AppOption & { to?: string; wait: boolean },
): Promise<void> {
  const name = namedApp(argument, options)
  const session = await openSession(options)
  const app = await getApp(session, name)
  const { id } = app
  const follows_pushes = app.source !== 'upload' && app.auto_deploy
  const body = options.to === undefined ? {} : { deployment_id: options.to }
  const { data } = await dataOf(
    session.api.POST('/api/apps/{id}/rollback', { params: { path: { id } }, body }),
  )
  await finishDeployment(session, data.id, options)
  if (options.json) return
  if (options.wait && data.rolled_back_to !== null) {
    const path = { params: { path: { id: data.rolled_back_to } } }
    const of = (await dataOf(session.api.GET('/api/deployments/{id}', path))).data
    say(`It runs what deployment #${of.number} of ${of.created_at} brought.`)
  }
  if (!follows_pushes) return
  const offers = `Let them again: portreeve apps auto-deploy on --app ${app.name}`
  // One that did not last has left the app following its branch.
  const off = `ushes do not deploy ${app.name} any more`
  if (!options.wait) return say(`Once it is live, p${off}. ${offers}`)
  const now = await getApp(session, id)
  if (!now.auto_deploy) say(`P${off}, so that none undoes this. ${offers}`)
}

export default defineClientVerb((verb) => {
  withNamedApp(verb)
    .description('Brings an earlier release back, without building it, and stops deploying pushes.')
    .option('--to <deployment>', 'id of the deployment to bring back (default: the one before the live one)')
    .option('--no-wait', 'do not wait until it serves')
    .action(rollback)
})
