import { own } from '#server/kernel/own'
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type BuildSpec, EngineError, type Image, type Labels, type PullOptions } from '../engine.ts'
import { type FakeBehaviour, type FakeMatch, type FakeSubject, matches } from './behaviour.ts'
import { pause } from './run.ts'

export interface FakeImage {
  image: Image
  subject: FakeSubject
}
export type FakeImages = ReturnType<typeof createFakeImages>

/** The same context and Dockerfile give the same image id, as the build cache of an engine does. */
function contentId(spec: BuildSpec): string {
  const hash = createHash('sha256').update(
    JSON.stringify([spec.dockerfile, spec.build_args, spec.target ?? '', spec.labels]),
  )
  if (spec.no_cache) hash.update(randomBytes(16))
  const names = readdirSync(spec.context, { recursive: true })
    .map(String)
    .filter((name) => !name.split('/').includes('.git'))
    .sort()
  for (const name of names) {
    const path = join(spec.context, name)
    const entry = statSync(path, { throwIfNoEntry: false })
    hash.update(name)
    if (entry?.isFile()) hash.update(readFileSync(path))
  }
  return `sha256:${hash.digest('hex')}`
}

function exposedPorts(dockerfile: string): number[] {
  const ports = [...dockerfile.matchAll(/^EXPOSE[ \t]+(.+)$/gim)]
    .flatMap((match) => match[1]!.split(/\s+/))
    .map((text) => Number.parseInt(text, 10))
  return [...new Set(ports.filter((port) => port > 0 && port < 65536))].sort((a, b) => a - b)
}

/** The failure that a behaviour asks for, in the words of the real adapter. */
function buildFailure(
  kind: Exclude<FakeBehaviour['build'], undefined | 'hang'>,
  log: readonly string[] = [],
): EngineError {
  switch (kind) {
    case 'fail':
      return new EngineError(
        'build_failed',
        'The command `npm run build` failed with exit code 1.',
        undefined,
        { log },
      )
    case 'out_of_memory':
      return new EngineError(
        'out_of_memory',
        'The build ran out of memory: the command `npm run build` was killed with exit code 137.',
      )
    case 'timeout':
      return new EngineError('timeout', 'The build took longer than its time limit.')
    case 'disk_full':
      return new EngineError('disk_full', 'The disk of the container engine is full.')
    case 'missing_base':
      return new EngineError(
        'image_not_found',
        'The image nosuch:1 does not exist.',
        'Check the name and tag; in a closed network run `npm run images`.',
      )
    case 'unavailable':
      return new EngineError('unavailable', 'The container engine does not answer.')
  }
}

/** Goes through the motions of a build as the behaviour says; throws when it is meant to go wrong. */
async function pretendBuild(behaviour: FakeBehaviour, spec: BuildSpec, signal: AbortSignal): Promise<void> {
  const steps = spec.dockerfile.split('\n').filter((line) => line.trim() && !line.startsWith('#'))
  for (const [index, line] of steps.entries())
    spec.onLog({ stream: 'system', text: `[${index + 1}/${steps.length}] ${line}` })
  for (const text of behaviour.build_log ?? []) spec.onLog({ stream: 'stdout', text })
  const hangs = behaviour.build === 'hang'
  const aborted = await pause(hangs ? spec.limits.timeout_ms : (behaviour.build_duration_ms ?? 0), signal)
  if (aborted) throw new EngineError('aborted', 'The build was cancelled.')
  if (hangs) throw buildFailure('timeout')
  if (behaviour.build && behaviour.build !== 'hang') throw buildFailure(behaviour.build, behaviour.build_log)
}

async function pretendPull(
  behaviour: FakeBehaviour,
  reference: string,
  options: PullOptions,
  signal: AbortSignal,
): Promise<void> {
  if (behaviour.pull === 'hang') await pause(600_000, signal)
  if (signal.aborted) throw new EngineError('aborted', 'The pull was cancelled.')
  if (behaviour.pull === 'missing')
    throw new EngineError('image_not_found', `The image ${reference} does not exist.`)
  if (behaviour.pull === 'denied')
    throw new EngineError('image_denied', `The registry refused access to the image ${reference}.`)
  if (behaviour.pull === 'unavailable')
    throw new EngineError('unavailable', 'The container engine does not answer.')
  options.onLog({ stream: 'system', text: `Pulled ${reference}` })
}

/** The images of the fake engine, by tag and id. */
export function createFakeImages(behaviours: { match: FakeMatch; behaviour: FakeBehaviour }[]) {
  const stored: FakeImage[] = []

  const find = (reference: string) =>
    stored.find(({ image }) => image.id === reference || image.tags.includes(reference))
  const behaviourFor = (subject: FakeSubject): FakeBehaviour =>
    behaviours.find(({ match }) => matches(match, subject))?.behaviour ?? {}

  function store(id: string, subject: FakeSubject, exposed_ports: number[], digest?: string): Image {
    for (const { image } of stored) image.tags = image.tags.filter((tag) => tag !== subject.reference)
    const known = find(id)
    if (known) {
      known.image.tags.push(subject.reference)
      return { ...known.image }
    }
    const image: Image = {
      id,
      tags: [subject.reference],
      ...(digest ? { digest } : {}),
      size_bytes: 10_000_000,
      exposed_ports,
      command: [],
      triggers: [],
      ...(subject.labels.project ? { owner: subject.labels.project } : {}),
      created_at: new Date().toISOString(),
    }
    stored.push({ image, subject })
    return { ...image }
  }

  function add(reference: string, options: { exposed_ports?: number[]; labels?: Labels } = {}): Image {
    const id = `sha256:${createHash('sha256').update(reference).digest('hex')}`
    const name = reference.split('@')[0]!.replace(/:[^/:]+$/, '')
    return store(
      id,
      { reference, dockerfile: '', labels: options.labels ?? {} },
      options.exposed_ports ?? [],
      `${name}@${id}`,
    )
  }

  async function build(spec: BuildSpec, signal: AbortSignal): Promise<Image> {
    const subject = { reference: spec.tag, dockerfile: spec.dockerfile, labels: spec.labels }
    const behaviour = behaviourFor(subject)
    await pretendBuild(behaviour, spec, signal)
    return store(contentId(spec), subject, behaviour.exposed_ports ?? exposedPorts(spec.dockerfile))
  }

  async function pull(reference: string, options: PullOptions, signal: AbortSignal): Promise<Image> {
    const behaviour = behaviourFor({ reference, dockerfile: '', labels: {} })
    await pretendPull(behaviour, reference, options, signal)
    return add(reference, { exposed_ports: behaviour.exposed_ports })
  }

  return {
    all: (): readonly FakeImage[] => stored,
    find,
    add,
    build,
    pull,
    list: (labels: Labels): Image[] =>
      stored
        .filter(({ subject }) =>
          Object.entries(labels).every(([key, value]) => own(subject.labels, key) === value),
        )
        .map(({ image }) => ({ ...image })),
    /** A tag takes only that tag away while others are left; an id takes the whole image. */
    remove(reference: string): void {
      const found = find(reference)
      if (!found) return
      found.image.tags =
        found.image.id === reference ? [] : found.image.tags.filter((tag) => tag !== reference)
      if (found.image.tags.length === 0) stored.splice(stored.indexOf(found), 1)
    },
    behaviourOf(reference: string): FakeBehaviour {
      const found = find(reference)
      if (!found) throw new EngineError('image_not_found', `The image ${reference} is not on this machine.`)
      const behaviour = behaviourFor(found.subject)
      return { ...behaviour, exposed_ports: behaviour.exposed_ports ?? found.image.exposed_ports }
    },
  }
}
