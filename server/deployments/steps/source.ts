import { createHash } from 'node:crypto'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { portOf } from '#server/env/resolved'
import { Fatal } from '#server/kernel/jobs/definition'
import { requireFree } from '#server/kernel/disk-reserve'
import { removeTree } from '#server/kernel/removal'
import { GitError, type GitSource } from '#server/platform/git/git'
import { hasImages } from '../stack/ending.ts'
import { requestOf, type DeploymentRequest, type DeploymentRow } from '../repository.ts'
import { appToBuild, type DeployStep, type DeployedApp, type DeployContext } from '../work.ts'

export const sourceDirectory = (context: DeployContext, deployment_id: string) =>
  join(context.work_directory, deployment_id, 'source')

/**
 * Hash of everything that a build depends on besides the layers of its base: equal means that the image would
 * be the same.
 */
export function buildKey(context: DeployContext, app: DeployedApp, commit: string): string {
  const { base_directory, build, port, dockerfile, source } = app.configuration
  // All of it: the plan comes with the image, and an image has what the release command needs.
  const parts: unknown[] = [source, commit, base_directory, build, port, dockerfile]
  const variables = context.ports.variables(app)
  const built_with = Object.entries(variables).filter(([, one]) => one.build)
  const asked_port = portOf(variables)
  // Under a key of the installation: a plain hash of a short secret could be found out by trying.
  if (built_with.length > 0 || asked_port !== undefined)
    parts.push(context.ports.fingerprint([built_with, asked_port]))
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}

async function adopt(
  context: DeployContext,
  step: DeployStep,
  app: DeployedApp,
  commit: string,
  no_cache: boolean | undefined,
): Promise<boolean> {
  step.state.commit_sha = commit
  step.state.build_key = buildKey(context, app, commit)
  const known = no_cache ? undefined : context.releases.findBuilt(app.id, step.state.build_key)
  if (!known) return false
  if (!(await context.engine.findImage(known.image_id))) {
    context.releases.markImageGone(known.image_id)
    context.logs.append(
      step.payload.deployment_id,
      'clone',
      'system',
      'The image that was built from this before has been removed from the server; it is built again.',
    )
    return false
  }
  const origin = context.deployments.find(known.deployment_id)
  step.state.image_id = known.image_id
  step.state.image_tag = known.image_tag ?? undefined
  step.state.plan = origin?.plan ? JSON.parse(origin.plan) : undefined
  context.logs.append(
    step.payload.deployment_id,
    'clone',
    'system',
    `Nothing has changed since deployment ${origin?.number ?? ''}: its image is used again, without a build.`,
  )
  return true
}

/** Whether the repository answered and has no such commit, e.g. after a force push. */
const isCommitGone = (error: unknown): boolean =>
  error instanceof GitError && error.code === 'commit_not_found'

async function fromGit(
  context: DeployContext,
  step: DeployStep,
  app: DeployedApp,
  requested: DeploymentRequest,
): Promise<void> {
  const { deployment_id } = step.payload
  const say = (text: string) => context.logs.append(deployment_id, 'clone', 'system', text)
  const credential = context.ports.gitCredential(app)
  const source: GitSource = {
    url: app.configuration.git_url!,
    branch: requested.branch ?? app.configuration.branch ?? undefined,
    commit: context.ports.approvedCommit(app) ?? requested.commit,
    ...(credential ? { credential } : {}),
  }
  say(`Cloning ${source.url}${source.branch ? ` (${source.branch})` : ''}.`)
  const directory = sourceDirectory(context, deployment_id)
  await removeTree(directory)
  if (app.configuration.source !== 'compose') context.ports.prepareDetection(app.id)
  const checkOut = (from: GitSource) =>
    context.fetchFor(step, (signal) =>
      context.git.checkout(
        from,
        directory,
        {
          lfs: true,
          mirror: app.id,
          onLog: (text) => context.logs.append(deployment_id, 'clone', 'stderr', text),
        },
        signal,
      ),
    )
  const checkout = await checkOut(source).catch((error: unknown) => {
    if (!requested.or_newest || source.commit !== requested.commit || !isCommitGone(error)) throw error
    const branch = source.branch ?? 'the default branch'
    say(
      `The commit ${requested.commit?.slice(0, 12)} is not in the repository any more; the newest of ${branch} is deployed instead.`,
    )
    return checkOut({ ...source, commit: undefined })
  })
  // Whoever pushes writes both, and everybody of the project reads them.
  const message = context.logs.redact(deployment_id, checkout.message)
  const author = context.logs.redact(deployment_id, checkout.author)
  context.deployments.change(deployment_id, {
    branch: checkout.branch,
    commit_sha: checkout.sha,
    commit_message: message,
    commit_author: author,
  })
  say(`Commit ${checkout.sha.slice(0, 12)} by ${author}: ${message}`)
  step.state.commit_sha = checkout.sha
  // A compose file is read each time: what did not change is seen service by service.
  if (app.configuration.source === 'compose') return
  const made = { ...app, commit_sha: checkout.sha }
  if (await adopt(context, step, made, checkout.sha, requested.no_cache)) void removeTree(directory)
}

/**
 * What a restart takes over: the release that is live now, which another deployment may have brought since it
 * was asked for.
 */
function requestForLive(context: DeployContext, deployment_id: string, app: DeployedApp): DeploymentRequest {
  const live = context.releases.find(app.live_release_id ?? '')
  if (!live)
    throw new Fatal(
      'nothing_live',
      'Nothing of this app is live any more, so there is nothing to restart.',
      'Deploy it.',
    )
  const asked = requestOf(context.deployments.find(deployment_id)!)
  const ask = { ...asked, from_release: live.id, from_deployment: live.deployment_id }
  context.deployments.change(deployment_id, { request: JSON.stringify(ask) })
  return ask
}

/**
 * What a deployment asks for that takes over a release: with the source of that release as well, when its
 * image is gone and has to be made again.
 */
async function requestForRelease(
  context: DeployContext,
  deployment_id: string,
  ask: DeploymentRequest,
): Promise<DeploymentRequest> {
  const release = context.releases.find(ask.from_release ?? '')
  if (!release || (await hasImages(context.engine, release))) return ask
  const origin = context.deployments.find(release.deployment_id)
  const { upload } = origin ? sourceOf(context, origin) : {}
  const { source } = release.configuration
  context.logs.append(
    deployment_id,
    'clone',
    'system',
    `The image of the release has been removed from the server; it is ${source === 'image' ? 'pulled' : 'built'} again.`,
  )
  const rebuilt: DeploymentRequest = {
    ...ask,
    rebuild: true,
    ...(release.configuration.git_url && origin?.branch ? { branch: origin.branch } : {}),
    ...(release.configuration.git_url && origin?.commit_sha ? { commit: origin.commit_sha } : {}),
    ...(upload ? { upload } : {}),
  }
  context.deployments.change(deployment_id, { request: JSON.stringify(rebuilt) })
  return rebuilt
}

/** What the deployment asked for that made what another one took over. */
function sourceOf(context: DeployContext, row: DeploymentRow): DeploymentRequest {
  const ask = requestOf(row)
  const origin = ask.from_deployment ? context.deployments.find(ask.from_deployment) : undefined
  return origin ? sourceOf(context, origin) : ask
}

/** Brings the source into the work folder, or finds that no build is needed. */
export async function cloneStep(context: DeployContext, step: DeployStep): Promise<void> {
  const { deployment_id, app_id } = step.payload
  const app = context.apps.get(app_id)
  const deployment = context.deployments.find(deployment_id)!
  step.state.previous = {
    deployment_id: app.live_deployment_id,
    release_id: app.live_release_id,
  }
  const asked =
    deployment.trigger === 'restart' ? requestForLive(context, deployment_id, app) : requestOf(deployment)
  if (asked.reason)
    context.logs.append(deployment_id, 'clone', 'system', `${asked.reason} The app starts on another one.`)
  const ask = await requestForRelease(context, deployment_id, asked)
  if (ask.from_release) {
    const release = context.releases.find(ask.from_release)
    const origin = context.deployments.find(release?.deployment_id ?? '')
    if (release && origin)
      context.deployments.change(deployment_id, {
        branch: origin.branch,
        commit_sha: origin.commit_sha,
        commit_message: origin.commit_message,
        commit_author: origin.commit_author,
      })
    if (!ask.rebuild) return step.skip()
  }
  context.advance(deployment_id, 'build')
  requireFree(context.work_directory)
  return fetchSource(context, step, appToBuild(context, step), ask)
}

/** Where the source comes from, by its kind. */
async function fetchSource(
  context: DeployContext,
  step: DeployStep,
  app: DeployedApp,
  ask: DeploymentRequest,
): Promise<void> {
  const { deployment_id } = step.payload
  // Before anything is fetched or built: a value that cannot be had fails the deployment at once.
  context.ports.variables(app)
  switch (app.configuration.source) {
    case 'git':
      return fromGit(context, step, app, ask)
    case 'upload': {
      const archive = ask.upload && join(context.uploads_directory, ask.upload)
      if (!archive || !existsSync(archive))
        throw new Fatal(
          'bad_archive',
          'What was uploaded is not on this server any more: backups of the platform hold no sources.',
          'Send the source again, to POST /api/apps/:id/upload or by `portreeve deploy`.',
        )
      const directory = sourceDirectory(context, deployment_id)
      await removeTree(directory)
      context.logs.append(deployment_id, 'clone', 'system', 'Unpacking the uploaded archive.')
      return context.ports.extract(archive, directory, step.signal)
    }
    case 'compose':
      if (app.configuration.compose === null) return fromGit(context, step, app, ask)
      mkdirSync(sourceDirectory(context, deployment_id), { recursive: true })
      return undefined
    case 'dockerfile':
      mkdirSync(sourceDirectory(context, deployment_id), { recursive: true })
      await adopt(context, step, app, 'inline', ask.no_cache)
      return undefined
    default:
      return step.skip()
  }
}

/** Removes what `cloneStep` put there; it is out of the way at once. */
export const removeWork = (context: DeployContext, deployment_id: string): Promise<void> =>
  removeTree(join(context.work_directory, deployment_id))
