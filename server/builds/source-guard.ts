import { own } from '#server/kernel/own'
import { hostAndPort, isOwnImage, registryHost } from '#server/kernel/image-reference'
import { Fatal } from '#server/kernel/jobs/definition'
import { type Engine, EngineError, type PullOptions } from '#server/platform/engine/engine'
import { isNamed, repositoryOf, taggedName } from '#server/platform/engine/images'
import type { EgressFilter } from '#server/platform/host-rules/egress'
import type { GuardedClient } from '#server/platform/outbound/client'
import { OutboundError, type OutboundPolicy } from '#server/platform/outbound/outbound'
import { parseChallenge } from '#server/platform/outbound/challenge'
import { readDockerfile } from './dockerfile-apart.ts'
import type { DockerfileSources } from './dockerfile-sources.ts'
import { removesByPath } from './mount-names.ts'

/** Reads Dockerfiles of users; another frontend could fetch whatever it likes. */
const FRONTEND = /^(?:docker\.io\/)?docker\/dockerfile(?:-upstream)?(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?$/
/** The classic builder takes it for the beginning of an id, also of an image that was made after it was checked. */
const MAY_BE_ID = /^(?:sha256:)?[0-9a-f]{1,64}$/
/**
 * No name of an image, for any engine: a part is empty, or begins or ends with a separator. The reader of the Dockerfile
 * also gives what a name is without the default of its variables (`node:-slim` of `node:${V}-slim`).
 */
const IS_NO_NAME = /^[^\w[]|\/\/|[/:@]$|[/:@][-.]|[-.][/:]/
/** An argument of this name steers the builder instead of the build. */
const BUILDER_ARGUMENT = /^BUILDKIT_/i
/** Docker Hub answers under another name than its images have. */
const API_HOST: Record<string, string> = { 'docker.io': 'registry-1.docker.io' }

const portOf = ({ port, protocol }: URL) => Number(port || (protocol === 'http:' ? 80 : 443))
const refused = (message: string, hint: string) => new Fatal('dockerfile_refused', message, hint)

async function asFatal<T>(check: () => T): Promise<Awaited<T>> {
  try {
    return await check()
  } catch (error) {
    if (!(error instanceof OutboundError) || error.code === 'aborted') throw error
    throw refused(
      `The Dockerfile fetches from an address that is refused: ${error.message}`,
      'Use a public address, or copy the file into the repository.',
    )
  }
}

/** A Dockerfile that may be built. */
export interface CheckedDockerfile {
  text: string
  /** Whether it names an image, by whichever of its tags: only those were looked at. */
  names(image: string): boolean
  /** Why an image that it names could not be looked at: a registry that shows it to the builder alone hides something. */
  unseen(image: string): EngineError | undefined
}
/** What a check of a Dockerfile may need besides its text. */
export interface SourceCheckOptions {
  build_args: Readonly<Record<string, string>>
  /** Whether the installation has a login for an image's registry that this build may not use. */
  isWithheld(image: string): boolean
  onLog: PullOptions['onLog']
  signal: AbortSignal
}
export interface SourceGuardParts {
  engine: Pick<Engine, 'findImage' | 'pullImage' | 'version'>
  policy: OutboundPolicy
  client: GuardedClient
  /** Keeps the engine's own process from what is not public; without it, what cannot be checked is refused. */
  egress?: EgressFilter
  registryAuth(image: string): PullOptions['auth']
}

/**
 * Looks at what a build or a pull would make the engine fetch. The filter on the engine's process
 * is what holds; this is the second line, and says in a sentence what is wrong.
 */
export function createSourceGuard({ engine, policy, client, egress, registryAuth }: SourceGuardParts) {
  /** Whether the engine itself is kept from what is not public, at this moment. */
  const isFiltered = async () => (await egress?.ensure())?.active ?? false

  async function admit(host: string, port: number, signal: AbortSignal): Promise<void> {
    if (!policy.isListed(host, port)) return
    const addresses = await policy.resolve(host, port, signal)
    await egress?.admit(
      addresses.map(({ address }) => address),
      port,
    )
  }

  /** A registry, and the service that hands out its tokens, by the addresses that they have now. */
  async function checkRegistry(host: string, signal: AbortSignal): Promise<void> {
    const base = own(API_HOST, host) ?? host
    const [name, port] = hostAndPort(base)
    await policy.resolve(name, port, signal)
    const answer = await client.send(`https://${base}/v2/`).catch((error: unknown) => {
      if (error instanceof OutboundError && policy.isListed(name, port)) return undefined
      throw error
    })
    await answer?.discard()
    const { realm } = parseChallenge(answer?.headers['www-authenticate'] ?? '').parameters
    if (!realm || !URL.canParse(realm)) return
    const url = new URL(realm)
    await policy.resolve(url.hostname, portOf(url), signal)
  }

  async function checkAddress(address: string, is_filtered: boolean, signal: AbortSignal): Promise<void> {
    const scp = /^[\w.-]+@([^/:]+):/.exec(address)?.[1]
    const url = scp === undefined && URL.canParse(address) ? new URL(address) : undefined
    if (url?.username || url?.password || (!scp && !url?.hostname))
      throw refused(
        'An address that the Dockerfile adds cannot be read.',
        'Write it like https://example.com/file.tar.gz, without user name and password.',
      )
    const host = scp ?? url!.hostname
    const port = scp ? 22 : portOf(url!)
    await asFatal(() => policy.resolve(host, port, signal))
    // Where it redirects to, and what its name means a moment later, only a filter can tell.
    if (!is_filtered)
      throw refused(
        `The Dockerfile adds ${host} over the network, which the container engine of this server may not do.`,
        'Fetch it in a step of the build instead, with RUN curl, or copy the file into the repository.',
      )
    await admit(host, port, signal)
  }

  /**
   * An image as its registry shows it without a login: one of that name may be here only because
   * others have one.
   */
  async function openToAll(image: string, is_filtered: boolean, { onLog, signal }: SourceCheckOptions) {
    if (!is_filtered) await asFatal(() => checkRegistry(registryHost(image), signal))
    return engine.pullImage(image, { anonymously: true, onLog }, signal).catch((error: unknown) => {
      if (!(error instanceof EngineError) || error.code === 'aborted') throw error
      throw refused(
        `The base image ${image.slice(0, 200)} cannot be had without a login, and this commit may not use those of the installation.`,
        'Use a public image, or approve the commit with secrets.',
      )
    })
  }

  /**
   * Looks at a base image before it is built on; fetches it where it is not here, since a registry may show the
   * builder another one than whoever asks before. Answers why it could not be looked at: that it is named does not
   * mean that the build uses it.
   */
  async function checkBase(
    image: string,
    is_filtered: boolean,
    options: SourceCheckOptions,
  ): Promise<EngineError | undefined> {
    if (isOwnImage(image))
      throw refused(
        `The Dockerfile uses an image below portreeve/, which belong to apps of this installation.`,
        'Use another base image.',
      )
    const [name, port] = hostAndPort(registryHost(image))
    await asFatal(() => policy.checkHost(name, port))
    await asFatal(() => admit(name, port, options.signal))
    // Nothing is built on it; the build says so where it is all that there is.
    if (IS_NO_NAME.test(image)) return undefined
    const here = await engine.findImage(image)
    if (here ? !isNamed(here, image) : MAY_BE_ID.test(image))
      throw refused(
        `The Dockerfile names an image by its id, ${image.slice(0, 80)}.`,
        'Name it as a registry does, such as node:22-slim.',
      )
    let found = here
    if (options.isWithheld(image)) {
      found = await openToAll(image, is_filtered, options)
    } else if (!found) {
      if (!is_filtered) await asFatal(() => checkRegistry(registryHost(image), options.signal))
      const fetched = await engine
        .pullImage(image, { auth: registryAuth(image), onLog: options.onLog }, options.signal)
        .catch((error: unknown) => {
          if (error instanceof EngineError && error.code !== 'aborted') return error
          throw error
        })
      if (fetched instanceof EngineError) return fetched
      found = fetched
    }
    if (found?.owner)
      throw refused(
        'The Dockerfile uses an image of an app of this installation.',
        'Use a base image of a registry.',
      )
    if ((found?.triggers.length ?? 0) > 0)
      throw refused(
        `The base image ${image} brings ONBUILD instructions, which are not run here.`,
        'Write what they do into the Dockerfile, and use a base image without them.',
      )
    return undefined
  }

  async function checkMount(place: string, signal: AbortSignal): Promise<void> {
    const { version } = await engine.version(signal)
    if (removesByPath(version))
      throw refused(
        `The Dockerfile mounts something at ${place.slice(0, 200)}: the builder of the engine here (${version}) can be led to remove what has such a name from the server.`,
        'Use a usual name for what is mounted, such as .cache, cache or package.json, written without a variable; engines from 24.0.9 and 25.0.2 on take any.',
      )
  }

  return {
    async checkDockerfile(dockerfile: string, options: SourceCheckOptions): Promise<CheckedDockerfile> {
      const { build_args, signal } = options
      const is_filtered = await isFiltered()
      const argument = Object.keys(build_args).find((name) => BUILDER_ARGUMENT.test(name))
      if (argument !== undefined)
        throw refused(
          `The build argument ${argument} is one of the builder's own.`,
          'Remove it: names that begin with BUILDKIT_ cannot be set.',
        )
      const sources = await readSources(dockerfile, build_args)
      const { addresses, images, unclear, frontend, text } = sources
      if (sources.mounts_part_of_cache)
        throw refused(
          'The Dockerfile mounts a folder of a cache, which builders let lead out of it to files of this server.',
          'Remove source from the cache mount, and name the folder in the command.',
        )
      if (sources.risky_mount !== undefined) await checkMount(sources.risky_mount, signal)
      if (sources.mounts_openly && (await engine.version(signal)).takes_links_for_devices)
        throw refused(
          'The Dockerfile mounts what its steps write to in a form that the engine of this server cannot hold to its place.',
          'Write it like RUN --mount=type=cache,target=/root/.npm, with the whole path and without quotes, variables or comments between; engines with runc from 1.2.8 and 1.3.3 on take any.',
        )
      if (sources.foreign_platform !== undefined)
        throw refused(
          `The Dockerfile takes a base image for ${sources.foreign_platform.slice(0, 80)}, which is not the platform of this server.`,
          'Remove --platform, or use --platform=$BUILDPLATFORM.',
        )
      if (sources.is_overgrown)
        throw refused(
          'The Dockerfile has so many variables, stages, images or ports, or such long words, that the builder would work on them for minutes.',
          'Have fewer in ARG and ENV, fewer stages that take from one another, or write long texts into a file of the repository; variables of the app that only its instances need can have the scope runtime.',
        )
      if (frontend !== undefined && !FRONTEND.test(frontend))
        throw refused(
          'The Dockerfile names a frontend other than docker/dockerfile.',
          'Remove its «syntax» line, or name docker/dockerfile there.',
        )
      if (unclear.length > 0)
        throw refused(
          `The Dockerfile leaves open what ${unclear[0]!.slice(0, 200)} is: an address must be there as it is, up to its path.`,
          'Write the address out, or use COPY where it is a file.',
        )
      for (const address of addresses) await checkAddress(address, is_filtered, signal)
      const unseen = new Map<string, EngineError>()
      for (const image of images.filter((name) => name !== 'scratch')) {
        const reason = await checkBase(image, is_filtered, options)
        if (reason) unseen.set(taggedName(image), reason)
      }
      const named = new Set([...images, ...(frontend ? [frontend] : [])].map(repositoryOf))
      return {
        text,
        names: (image) => named.has(repositoryOf(image)),
        unseen: (image) => unseen.get(taggedName(image)),
      }
    },
    async checkImage(reference: string, signal: AbortSignal): Promise<void> {
      if (isOwnImage(reference))
        throw new Fatal(
          'registry_refused',
          `The image ${reference.slice(0, 200)} is below portreeve/, which belong to apps of this installation.`,
          'Use an image of a registry.',
        )
      const host = registryHost(reference)
      const [name, port] = hostAndPort(host)
      const is_filtered = await isFiltered()
      try {
        await admit(name, port, signal)
        if (!is_filtered && !(await engine.findImage(reference))) await checkRegistry(host, signal)
      } catch (error) {
        if (!(error instanceof OutboundError) || error.code === 'aborted') throw error
        if (error.code !== 'forbidden') return // The pull says what is wrong.
        throw new Fatal(
          'registry_refused',
          `The registry of the image ${reference.slice(0, 200)} is refused: ${error.message}`,
          'Use a registry at a public address, or let the operator of this server allow it.',
        )
      }
    },
  }
}
export type SourceGuard = ReturnType<typeof createSourceGuard>

async function readSources(
  dockerfile: string,
  build_args: Readonly<Record<string, string>>,
): Promise<DockerfileSources> {
  try {
    return await readDockerfile(dockerfile, build_args)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw refused(error.message, 'Begin it with FROM, or with a comment.')
  }
}
