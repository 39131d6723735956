import { hostAndPort, isOwnImage, registryHost } from '#server/kernel/image-reference'
import { Fatal } from '#server/kernel/jobs/definition'
import { OutboundError, type OutboundPolicy } from '#server/platform/outbound/outbound'
import { dockerfileSources } from './dockerfile-sources.ts'

/** Reads Dockerfiles of users; another frontend could fetch whatever it likes. */
const FRONTEND = /^(?:docker\.io\/)?docker\/dockerfile(?:-upstream)?(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?$/
const refusedDockerfile = (message: string, hint: string) => new Fatal('dockerfile_refused', message, hint)

/** Port that an address without one is fetched from. */
function defaultPort(url: URL | undefined): number {
  if (!url) return 22
  return url.protocol === 'http:' ? 80 : 443
}

/**
 * Throws Fatal when a Dockerfile would make the engine fetch from where this server may not connect to: the
 * engine does so from this machine's own network.
 */
export async function checkDockerfile(
  dockerfile: string,
  build_args: Readonly<Record<string, string>>,
  policy: OutboundPolicy,
  signal: AbortSignal,
): Promise<void> {
  const { addresses, images, unclear, frontend } = dockerfileSources(dockerfile, build_args)
  if (frontend !== undefined && !FRONTEND.test(frontend))
    throw refusedDockerfile(
      'The Dockerfile names a frontend other than docker/dockerfile.',
      'Remove its «syntax» line, or name docker/dockerfile there.',
    )
  if (unclear.length > 0)
    throw refusedDockerfile(
      `The Dockerfile leaves open what ${unclear[0]!.slice(0, 200)} is: an address must be there as it is, up to its path.`,
      'Write the address out, or use COPY where it is a file.',
    )
  for (const address of addresses) {
    const scp = /^[\w.-]+@([^/:]+):/.exec(address)?.[1]
    const url = scp === undefined && URL.canParse(address) ? new URL(address) : undefined
    if (url?.username || url?.password || (!scp && !url?.hostname))
      throw refusedDockerfile(
        'An address that the Dockerfile adds cannot be read.',
        'Write it like https://example.com/file.tar.gz, without user name and password.',
      )
    await asFatal(() => policy.resolve(scp ?? url!.hostname, Number(url?.port || defaultPort(url)), signal))
  }
  for (const image of images) {
    if (isOwnImage(image))
      throw refusedDockerfile(
        'The Dockerfile uses an image below portreeve/, which belong to apps of this installation.',
        'Use another base image.',
      )
    await asFatal(() => policy.checkHost(...hostAndPort(registryHost(image))))
  }
}

async function asFatal(check: () => unknown): Promise<void> {
  try {
    await check()
  } catch (error) {
    if (!(error instanceof OutboundError) || error.code === 'aborted') throw error
    throw refusedDockerfile(
      `The Dockerfile fetches from an address that is refused: ${error.message}`,
      'Use a public address, or copy the file into the repository.',
    )
  }
}
