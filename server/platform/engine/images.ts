import { eachLimited } from './concurrency.ts'
import type { Connection } from './connection.ts'
import { EngineError, type Image, type Labels } from './engine.ts'
import { isTooLarge } from './failures.ts'
import { excessOf, type ImageConfig } from './image-bounds.ts'
import { type LabelScope, ownLabel } from './labels.ts'

const PARALLEL = 8
const REMOVE_DEADLINE_MS = 120_000
/** What an image says of itself is read up to 64 MiB: a busy machine takes more than ten seconds. */
const ADMIT_DEADLINE_MS = 60_000

interface ImageInfo {
  Id: string
  RepoTags: string[] | null
  RepoDigests: string[] | null
  Size: number
  Created: string
  Config: ImageConfig | null
}

/**
 * Image references hold slashes and colons that belong into the path as they are, and nothing else that could
 * leave it.
 */
export function imagePath(reference: string, verb = ''): string {
  return `/images/${reference
    .split('/')
    .map((part) => encodeURIComponent(part).replaceAll('%3A', ':').replaceAll('%40', '@'))
    .join('/')}${verb}`
}

/** The repository of a reference: `docker.io/library/x` and `x` are one. */
export function repositoryOf(reference: string): string {
  const name = reference.split('@')[0]!.replace(/:[^/:]+$/, '')
  return name.replace(/^(?:index\.)?docker\.io\//, '').replace(/^library\//, '')
}

/** An image as everybody calls it, by its tag: builders add the registry of all, and digests. */
export function taggedName(reference: string): string {
  const tag = /:[^/:]+$/.exec(reference.split('@')[0]!)?.[0]
  return `${repositoryOf(reference)}${tag ?? ':latest'}`
}

/**
 * Whether an image of the engine really has this name: the engine also finds one by the beginning of its id,
 * whoever it belongs to.
 */
export function isNamed(image: Image, reference: string): boolean {
  const short = (name: string) => name.replace(/^(index\.)?docker\.io\//, '').replace(/^library\//, '')
  const desired = short(/@|:[^/]*$/.test(reference) ? reference : `${reference}:latest`)
  return [...image.tags, image.digest ?? ''].some((name) => short(name) === desired)
}

const refused = (excess: string) =>
  new EngineError(
    'image_refused',
    `The image has ${excess}, which is more than may be run here.`,
    'Look at LABEL, ENV, EXPOSE and VOLUME of its Dockerfile and of its base image.',
  )

const idOf = (entry: unknown) => ({ Id: (entry as { Id: string }).Id })

/** Images that are on the engine: found, listed and removed. */
export function createImages(connection: Connection, scope: LabelScope) {
  const inspect = (reference: string, deadline_ms?: number) =>
    connection.call<ImageInfo | undefined>({
      path: imagePath(reference, '/json'),
      accept: [404],
      ...(deadline_ms === undefined ? {} : { deadline_ms }),
    })

  async function find(reference: string): Promise<Image | undefined> {
    const info = await inspect(reference)
    return info && toImage(info, reference)
  }

  /** An image that was just made or fetched; one that says too much of itself is removed again and refused. */
  async function admit(reference: string): Promise<Image | undefined> {
    const info = await inspect(reference, ADMIT_DEADLINE_MS).catch(async (error: unknown) => {
      if (!isTooLarge(error)) throw error
      await removeOne(reference)
      throw refused('many megabytes of labels, variables and the like')
    })
    const excess = excessOf(info?.Config ?? null)
    if (!info || excess === undefined) return info && toImage(info, reference)
    await remove(info.Id)
    throw refused(excess)
  }

  /** Removes a tag or an id; false when something uses it. */
  async function removeOne(reference: string): Promise<boolean> {
    try {
      await connection.call({
        method: 'DELETE',
        path: imagePath(reference),
        accept: [404],
        deadline_ms: REMOVE_DEADLINE_MS,
      })
      return true
    } catch (error) {
      if (error instanceof EngineError && error.code === 'conflict') return false
      throw error
    }
  }

  async function isUsed(id: string): Promise<boolean> {
    const users = await connection.call<{ ImageID: string }[]>({
      path: '/containers/json',
      query: { all: true, filters: JSON.stringify({ ancestor: [id] }) },
      keep: (entry) => ({ ImageID: (entry as { ImageID: string }).ImageID }),
    })
    return users.some(({ ImageID }) => ImageID === id)
  }

  /** An id goes with all its tags; a tag takes only itself away while the image has others. */
  async function remove(reference: string): Promise<boolean> {
    const info = await inspect(reference)
    if (!info) return true
    if (reference !== info.Id && `sha256:${reference}` !== info.Id) return removeOne(reference)
    if (await isUsed(info.Id)) return false
    // Without force, the engine refuses an id that several tags name.
    for (const tag of info.RepoTags ?? []) if (!(await removeOne(tag))) return false
    return removeOne(info.Id)
  }

  return {
    find,
    admit,
    remove,
    async list(labels: Labels): Promise<Image[]> {
      const listed = await connection.call<{ Id: string }[]>({
        path: '/images/json',
        query: { filters: JSON.stringify({ label: scope.filter(labels) }) },
        keep: idOf,
      })
      const found = await eachLimited(listed, PARALLEL, ({ Id }) => find(Id))
      return found.filter((image) => image !== undefined)
    },
    /** Removes untagged images of ours that carry these labels, where nothing uses them. */
    async removeDangling(labels: Labels): Promise<void> {
      const listed = await connection.call<{ Id: string }[]>({
        path: '/images/json',
        query: { filters: JSON.stringify({ label: scope.filter(labels), dangling: ['true'] }) },
        keep: idOf,
      })
      for (const { Id } of listed) await removeOne(Id)
    },
  }
}
export type Images = ReturnType<typeof createImages>

function toImage(info: ImageInfo, reference: string): Image {
  const ports = Object.keys(info.Config?.ExposedPorts ?? {})
    .filter((text) => !text.endsWith('/udp'))
    .map((text) => Number.parseInt(text, 10))
  const digests = info.RepoDigests ?? []
  const owner = ownLabel(info.Config?.Labels, 'project')
  const digest = digests.find((text) => repositoryOf(text) === repositoryOf(reference)) ?? digests[0]
  return {
    id: info.Id,
    tags: info.RepoTags ?? [],
    ...(digest ? { digest } : {}),
    size_bytes: info.Size,
    exposed_ports: [...new Set(ports)].filter((port) => port > 0).sort((a, b) => a - b),
    command: [...(info.Config?.Entrypoint ?? []), ...(info.Config?.Cmd ?? [])],
    triggers: info.Config?.OnBuild ?? [],
    ...(owner === undefined ? {} : { owner }),
    created_at: new Date(info.Created).toISOString(),
  }
}
