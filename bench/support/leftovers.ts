import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { docker, type Portreeve } from '#test/support/portreeve'

const lines = (text: string): string[] => text.split('\n').filter(Boolean)

/** Releases of which an app may keep the image. Source: api.md "Apps and deployments". */
const RELEASES_KEPT = 5

/**
 * What must not be after a deployment has ended, as sentences; none when all is as it should be: exactly one
 * release runs, every image belongs to a deployment that was live, and no work folder is left.
 * @param services of a stack; an app that is none runs in one container.
 */
export async function leftovers(portreeve: Portreeve, app_id: string, services = 1): Promise<string[]> {
  const found: string[] = []
  const {
    body: { data: app },
  } = await portreeve.call('GET', `/api/apps/${app_id}`)
  const {
    body: { data: live },
  } = await portreeve.call('GET', `/api/deployments/${app.live_deployment_id}`)
  const containers = lines(
    docker(
      'ps',
      '-a',
      '--no-trunc',
      '--filter',
      `label=portreeve.app=${app_id}`,
      '--format',
      '{{.Names}} {{.State}}',
    ),
  )
  if (containers.length !== services || !containers.every((line) => line.endsWith(' running')))
    found.push(`containers: ${containers.join(', ') || 'none'}`)
  if (app.status !== 'running') found.push(`the app is ${app.status}`)
  if (live?.status !== 'live') found.push(`the live deployment is ${live?.status}`)
  const history = (await portreeve.call('GET', `/api/apps/${app_id}/deployments?per_page=100`)).body.data as {
    status: string
    image: string | null
    finished_at: string | null
  }[]
  if (history.some((deployment) => !deployment.finished_at)) found.push('a deployment has not ended')
  const images = new Set(
    lines(docker('images', '-q', '--no-trunc', '--filter', `label=portreeve.app=${app_id}`)),
  )
  const known = new Set(
    history
      .filter(({ status }) => status === 'live' || status === 'replaced')
      .map((deployment) => deployment.image),
  )
  // A deployment of a stack names no image: each service has its own.
  for (const image of services === 1 ? images : [])
    if (!known.has(image)) found.push(`image ${image.slice(7, 19)} belongs to no release`)
  if (images.size > RELEASES_KEPT) found.push(`${images.size} images are kept`)
  const work = join(portreeve.data_directory, 'work')
  const folders = existsSync(work) ? readdirSync(work).filter((name) => name.startsWith('dep_')) : []
  if (folders.length > 0) found.push(`work folders: ${folders.join(', ')}`)
  return found
}

/** What is left of a deleted app; nothing when all is gone. */
export function remains(portreeve: Portreeve, app_id: string): string[] {
  const containers = lines(docker('ps', '-aq', '--filter', `label=portreeve.app=${app_id}`)).map(
    (id) => `container ${id}`,
  )
  const images = lines(docker('images', '-q', '--filter', `label=portreeve.app=${app_id}`)).map(
    (id) => `image ${id}`,
  )
  const work = join(portreeve.data_directory, 'work')
  return [
    ...containers,
    ...images,
    ...(existsSync(work)
      ? readdirSync(work)
          .filter((name) => name.startsWith('dep_'))
          .map((name) => `folder ${name}`)
      : []),
  ]
}
