import { type GitRepository, type GitServer, startGitServer } from '#test/support/git-server'
import { nodeApp, type Portreeve, startPortreeve } from '#test/support/portreeve'

/** The built server on the real engine, with a Git server beside it. */
export interface Stage {
  portreeve: Portreeve
  forge: GitServer
  /** Creates an app from a new repository and waits until its first deployment is live. */
  app(name: string, settings?: Record<string, unknown>, files?: Record<string, string>): Promise<StagedApp>
}
export interface StagedApp {
  id: string
  name: string
  host: string
  repository: GitRepository
}

/**
 * Runs an experiment on a stage of its own and takes the stage down, whatever happens. Private hosts in `env`
 * are allowed beside the Git server.
 */
export async function onStage(
  experiment: (stage: Stage) => Promise<void>,
  { PORTREEVE_ALLOWED_PRIVATE_HOSTS: hosts, ...env }: Record<string, string> = {},
): Promise<void> {
  const forge = await startGitServer()
  let portreeve: Portreeve | undefined
  const leave = async () => {
    await portreeve?.dispose()
    await forge.close()
  }
  const interrupted = () => void leave().finally(() => process.exit(130))
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted)
  try {
    portreeve = await startPortreeve({
      // What tests load beside the server would be measured along, in each of its threads.
      is_watched: false,
      env: {
        PORTREEVE_ALLOWED_PRIVATE_HOSTS: [forge.host, ...(hosts ? [hosts] : [])].join(','),
        PORTREEVE_LOG_LEVEL: 'info',
        ...env,
      },
    })
    await experiment({
      portreeve,
      forge,
      app: (name, settings, files) => createApp(portreeve!, forge, name, settings, files),
    })
  } catch (error) {
    console.error(portreeve?.output().split('\n').slice(-25).join('\n'))
    throw error
  } finally {
    process.off('SIGINT', interrupted).off('SIGTERM', interrupted)
    await leave()
  }
}

async function createApp(
  portreeve: Portreeve,
  forge: GitServer,
  name: string,
  settings: Record<string, unknown> = {},
  files: Record<string, string> = {},
): Promise<StagedApp> {
  const repository = forge.repository(name)
  repository.commit({ ...nodeApp(`${name} 1`), ...files }, 'version 1')
  const created = await portreeve.call('POST', '/api/apps', {
    name,
    git_url: repository.url,
    branch: 'main',
    soak_seconds: 0,
    ...settings,
  })
  if (created.status !== 201) throw new Error(`Creating ${name}: ${JSON.stringify(created.body)}`)
  const { id } = created.body.data
  const app = await portreeve.untilApp(id, ['running', 'failed'])
  const first = await portreeve.untilDeployment(app.latest_deployment.id)
  if (first.status !== 'live')
    throw new Error(`The first deployment of ${name}: ${JSON.stringify(first.error)}`)
  return { id, name, host: `${name}.apps.test`, repository }
}

/**
 * The deployment that made the newest version but the one that serves: rollbacks to it go to and fro, however
 * many there are.
 */
async function otherVersion(portreeve: Portreeve, app_id: string): Promise<string> {
  const { live_deployment_id } = (await portreeve.call('GET', `/api/apps/${app_id}`)).body.data
  const deployments: any[] = (await portreeve.call('GET', `/api/apps/${app_id}/deployments?per_page=100`))
    .body.data
  const serving = deployments.find(({ id }) => id === live_deployment_id)?.commit.sha
  const other = deployments.find(
    ({ status, trigger, commit }) =>
      ['live', 'replaced'].includes(status) && trigger !== 'rollback' && commit.sha !== serving,
  )
  if (!other) throw new Error('There is no other version to go back to.')
  return other.id
}

/** Starts a deployment and returns its id. */
export async function startDeployment(
  portreeve: Portreeve,
  app_id: string,
  verb: 'deploy' | 'rollback' = 'deploy',
): Promise<string> {
  const answer = await portreeve.call(
    'POST',
    `/api/apps/${app_id}/${verb}`,
    verb === 'rollback' ? { deployment_id: await otherVersion(portreeve, app_id) } : {},
  )
  if (answer.status !== 201) throw new Error(`POST ${verb}: ${JSON.stringify(answer.body)}`)
  return answer.body.data.id as string
}

/** Deploys (or rolls back) and waits for the end, which must be live. */
export async function deployed(
  portreeve: Portreeve,
  app_id: string,
  verb: 'deploy' | 'rollback' = 'deploy',
): Promise<any> {
  const ended = await portreeve.untilDeployment(await startDeployment(portreeve, app_id, verb))
  if (ended.status !== 'live')
    throw new Error(`Deployment ${ended.number} is ${ended.status}: ${JSON.stringify(ended.error)}`)
  return ended
}
