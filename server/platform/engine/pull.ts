import type { Connection } from './connection.ts'
import { type DiskRoom, filledTheDisk } from './disk-room.ts'
import { EngineError, type Image, type PullOptions } from './engine.ts'
import { aborted, diskFull, engineWords, saysDiskFull, toEngineError } from './failures.ts'
import { heartbeat } from './heartbeat.ts'
import type { Images } from './images.ts'
import { readJsonLines } from './json-lines.ts'
import { tookTheMemory, unwatched, type WatchMemory } from './memory.ts'
import { clampMessage, endsOf } from './messages.ts'

/** A registry that sends nothing for this long is given up. */
const SILENCE_LIMIT_MS = 120_000
const PULL_LIMIT_MS = 30 * 60_000

interface PullProgress {
  status?: string
  id?: string
  error?: string
  errorDetail?: { message?: string }
}

/** Pulls with progress; an image that a digest pins and that is here is taken as it is. */
export function createPull(
  connection: Connection,
  images: Images,
  room: DiskRoom,
  watchMemory: WatchMemory = unwatched,
) {
  return async function pullImage(
    reference: string,
    options: PullOptions,
    signal: AbortSignal,
  ): Promise<Image> {
    if (signal.aborted) throw aborted('The pull')
    const may_know = !options.anonymously && reference.includes('@sha256:')
    const known = may_know ? await images.find(reference) : undefined
    if (known) return known
    const beat = heartbeat({ silence_ms: SILENCE_LIMIT_MS, limit_ms: PULL_LIMIT_MS }, signal)
    const watched = room.watch(beat.signal)
    const memory = watchMemory(watched.signal)
    try {
      const answer = await connection.stream({
        method: 'POST',
        path: '/images/create',
        query: splitReference(reference),
        signal: memory.signal,
        deadline_ms: 0,
        headers: options.auth ? { 'X-Registry-Auth': authHeader(options.auth) } : {},
      })
      const seen = new Set<string>()
      for await (const progress of readJsonLines<PullProgress>(answer)) {
        beat.alive()
        const failure = progress.errorDetail?.message ?? progress.error
        if (failure) throw pullError(reference, failure)
        // One line per step of a layer, not one per kilobyte.
        const text = progress.id ? `${progress.id}: ${progress.status ?? ''}` : (progress.status ?? '')
        if (!text || seen.has(text)) continue
        seen.add(text)
        options.onLog({ stream: 'system', text: clampMessage(text) })
      }
      const image = await images.admit(reference)
      if (!image) throw pullError(reference, 'manifest unknown')
      return image
    } catch (error) {
      if (watched.filled()) throw filledTheDisk(`The pull of the image ${clampMessage(reference, 120)}`)
      if (memory.filled()) throw tookTheMemory(`The pull of the image ${clampMessage(reference, 120)}`)
      throw pullFailure(reference, error, beat.ended(), signal)
    } finally {
      memory.stop()
      watched.stop()
      beat.stop()
    }
  }
}

function pullFailure(
  reference: string,
  error: unknown,
  ended: 'silence' | 'limit' | undefined,
  signal: AbortSignal,
): EngineError {
  if (signal.aborted) return aborted('The pull')
  if (ended)
    return new EngineError(
      'timeout',
      `Pulling the image ${clampMessage(reference)} took too long.`,
      'Check the network between this server and the registry, then try again.',
      { cause: error },
    )
  const failure = toEngineError(error)
  if ((failure.code === 'failed' || failure.code === 'not_found') && failure.cause instanceof Error)
    return pullError(reference, failure.cause.message)
  return failure
}

/**
 * `name:tag` or `name@digest` in the two parameters of the engine; without either, the tag `latest`, never
 * all tags.
 */
function splitReference(reference: string): { fromImage: string; tag: string } {
  const at = reference.indexOf('@')
  if (at >= 0)
    return {
      fromImage: reference.slice(0, at).replace(/:[^/:]+$/, ''),
      tag: reference.slice(at + 1),
    }
  const colon = /^(.*):([^/:]+)$/.exec(reference)
  return colon ? { fromImage: colon[1]!, tag: colon[2]! } : { fromImage: reference, tag: 'latest' }
}

function authHeader(auth: NonNullable<PullOptions['auth']>): string {
  // The engine wants the URL-safe alphabet, but with padding.
  const text = JSON.stringify({
    username: auth.username,
    password: auth.password,
    serveraddress: auth.server,
  })
  return Buffer.from(text).toString('base64').replaceAll('+', '-').replaceAll('/', '_')
}

/** What the registry or the engine said about an image, as an error of ours. */
export function pullError(reference: string, words: string): EngineError {
  const text = endsOf(words)
  const cause = new Error(text)
  const image = clampMessage(reference, 120)
  if (saysDiskFull(text)) return diskFull(cause)
  if (
    /unauthorized|authentication required|no basic auth|denied: |incorrect username/i.test(text) &&
    !/does not exist or may require/i.test(text)
  ) {
    return new EngineError(
      'image_denied',
      `The registry refused access to the image ${image}.`,
      'Check the login that is stored for this registry; an administrator changes it under registries.',
      { cause },
    )
  }
  if (
    /does not exist or may require|manifest unknown|not found|no such image|name unknown|repository .* not/i.test(
      text,
    )
  ) {
    return new EngineError(
      'image_not_found',
      `The image ${image} does not exist, or the registry shows it only after a login.`,
      'Check its name and tag, and add registry credentials if it is private.',
      { cause },
    )
  }
  if (/invalid reference format|invalid tag|repository name must be/i.test(text)) {
    return new EngineError(
      'image_not_found',
      `${image} is not a valid image name.`,
      'Write it as name:tag or name@sha256:….',
      { cause },
    )
  }
  if (
    /dial tcp|lookup|connection refused|i\/o timeout|no such host|TLS handshake|x509|context deadline|network is unreachable|EOF/i.test(
      text,
    )
  ) {
    return new EngineError(
      'image_not_found',
      `The registry of the image ${image} cannot be reached from this server.`,
      'Check the network and DNS of the server. In a closed network, `npm run images` makes the usual base images without a registry.',
      { cause },
    )
  }
  return new EngineError(
    'failed',
    `The image ${image} could not be pulled: ${engineWords(text)}`,
    undefined,
    { cause },
  )
}
