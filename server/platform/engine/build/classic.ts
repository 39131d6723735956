import { randomUUID } from 'node:crypto'
import { pack, type Pack } from 'tar-stream'
import { createPace } from '#server/kernel/pace'
import { buildQuery } from './buildkit.ts'
import { withoutCacheMounts } from './cache-mounts.ts'
import { type ContextEntry, openContextFile, walkContext } from './context.ts'
import { buildError } from './failure.ts'
import type { Connection } from '../connection.ts'
import { EngineError, type BuildLogLine, type BuildSpec } from '../engine.ts'
import { readJsonLines } from '../json-lines.ts'
import type { LabelScope } from '../labels.ts'
import { createLineSplitter, stripColours } from '../containers/log-lines.ts'
import { clampMessage } from '../messages.ts'
import { REMEMBERED } from './telling-lines.ts'

/** What is split into lines at once: one write of a command may hold thousands. */
const PART_BYTES = 4096
const CPU_PERIOD_US = 100_000
/** The classic builder shows error output in red, which is how it can be told from the rest. */
const RED = '\u001b[91m'
const RESET = /^(?:\u001b\[0m)+/

const BUILDER_WORDS =
  /^(?: ---> |Removing intermediate container |Successfully (?:built|tagged) |Step \d+\/\d+ : )/
/** Labels are ours, and each costs this builder a step of its own. */
const LABEL_STEP = /^Step \d+\/\d+ : LABEL portreeve\./

interface BuildEvent {
  stream?: string
  status?: string
  id?: string
  aux?: { ID?: string }
  error?: string
  errorDetail?: { message?: string }
}

/** Builds with the engine's classic builder, which enforces limits by itself; answers the image's id. */
export async function buildClassic(
  connection: Connection,
  scope: LabelScope,
  spec: BuildSpec,
  signal: AbortSignal,
): Promise<string> {
  const dockerfile = withoutMounts(spec)
  const name = `.portreeve-${randomUUID()}.dockerfile`
  const { memory_bytes, cpus } = spec.limits
  const answer = await connection.stream({
    method: 'POST',
    path: '/build',
    signal,
    deadline_ms: 0,
    upload: contextTar(spec.context, name, dockerfile),
    query: {
      ...buildQuery(spec, scope),
      version: '1',
      dockerfile: name,
      memory: memory_bytes,
      memswap: memory_bytes,
      cpuperiod: CPU_PERIOD_US,
      cpuquota: Math.round(cpus * CPU_PERIOD_US),
    },
    headers: spec.registries?.length ? { 'X-Registry-Config': registryConfig(spec.registries) } : {},
  })
  const log = createClassicLog(spec.cache_scope, (line) => spec.onLog(line))
  let image_id: string | undefined
  let failure: string | undefined
  for await (const event of readJsonLines<BuildEvent>(answer)) {
    if (event.stream !== undefined) await log.text(event.stream)
    if (event.status !== undefined) log.status(event.id ? `${event.id}: ${event.status}` : event.status)
    if (event.aux?.ID) image_id = event.aux.ID
    failure ??= event.errorDetail?.message ?? event.error
  }
  log.end()
  if (failure !== undefined || !image_id) {
    throw buildError({
      message: failure ?? 'the builder ended without an image',
      step: log.lastStep(),
      lines: log.linesOfStep(),
      dockerfile: spec.dockerfile,
      memory_bytes,
      memory: 'unknown',
    })
  }
  return image_id
}

/**
 * Cache mounts only save time, so the builder that does not know them goes without; a secret mount
 * cannot be left out.
 */
function withoutMounts(spec: BuildSpec): string {
  const text = withoutCacheMounts(spec.dockerfile)
  if (Object.keys(spec.secrets).length > 0 && /--mount=type=secret/.test(text)) {
    throw new EngineError(
      'build_failed',
      'The build uses secrets, which need BuildKit, and BuildKit cannot be used safely on this engine.',
      'Run Portreeve as root on the machine of the engine, so that it can limit builds; or give secret variables the scope runtime alone.',
    )
  }
  return text
}

function registryConfig(registries: NonNullable<BuildSpec['registries']>): string {
  const config = Object.fromEntries(
    registries.map(({ server, username, password }) => [
      server,
      { username, password, serveraddress: server },
    ]),
  )
  return Buffer.from(JSON.stringify(config)).toString('base64').replaceAll('+', '-').replaceAll('/', '_')
}

/**
 * The context as a tar stream of constant memory. Our Dockerfile has a name that no repository has,
 * and an ignore file that names only it and itself makes the builder take both out again before the
 * first COPY.
 */
function contextTar(context: string, dockerfile_name: string, dockerfile: string): Pack {
  const archive = pack()
  void fill(archive, context, dockerfile_name, dockerfile).then(
    () => archive.finalize(),
    (error: unknown) => archive.destroy(error as Error),
  )
  return archive
}

async function fill(
  archive: Pack,
  context: string,
  dockerfile_name: string,
  dockerfile: string,
): Promise<void> {
  archive.entry({ name: dockerfile_name, mode: 0o644 }, dockerfile)
  archive.entry({ name: '.dockerignore', mode: 0o644 }, `${dockerfile_name}\n.dockerignore\n`)
  for await (const entry of walkContext(context)) {
    if (entry.path !== '.dockerignore') await addEntry(archive, context, entry)
  }
}

async function addEntry(
  archive: Pack,
  context: string,
  { path, kind, mode, size, modified_ms, target }: ContextEntry,
): Promise<void> {
  const header = { name: path, mode, uid: 0, gid: 0, mtime: new Date(modified_ms) }
  if (kind === 'folder') archive.entry({ ...header, type: 'directory' })
  else if (kind === 'link') archive.entry({ ...header, type: 'symlink', linkname: target })
  else await addFile(archive, context, path, { ...header, size })
}

async function addFile(
  archive: Pack,
  context: string,
  path: string,
  header: { name: string; mode: number; mtime: Date; size: number },
): Promise<void> {
  const file = await openContextFile(context, path)
  try {
    const sink = archive.entry(header)
    // A file that shrank since it was announced cannot be sent: the archive would be out of step.
    sink.on('error', (error: Error) => archive.destroy(error))
    // Never more than the announced size, also when the file grows meanwhile.
    if (header.size > 0) {
      for await (const chunk of file.createReadStream({
        start: 0,
        end: header.size - 1,
        autoClose: false,
      }))
        await write(sink, chunk as Buffer)
    }
    sink.end(undefined)
  } finally {
    await file.close()
  }
}

/** Writes at the reader's pace; a reader that left ends the walk. */
function write(sink: ReturnType<Pack['entry']>, chunk: Buffer): Promise<void> | void {
  if (sink.write(chunk)) return
  return new Promise<void>((resolve, reject) => {
    const settle = () => {
      sink.off('drain', settle)
      sink.off('close', settle)
      if (sink.destroyed) reject(new Error('the upload was ended'))
      else resolve()
    }
    sink.on('drain', settle)
    sink.on('close', settle)
  })
}

/**
 * Sorts the classic builder's text into its own words and the output of commands.
 * @param owner for whom it is built: whoever prints very much takes turns with others.
 */
export function createClassicLog(
  owner: string,
  onLog: (line: BuildLogLine) => void,
  now: () => number = () => performance.now(),
) {
  const pace = createPace(owner, now)
  const seen = new Set<string>()
  let step: string | undefined
  let lines: string[] = []
  const print = (stream: 'stdout' | 'stderr', text: string) => {
    lines.push(text)
    if (lines.length > REMEMBERED) lines.shift()
    onLog({ stream, text })
  }
  const splitter = createLineSplitter((text) => {
    const plain = stripColours(text)
    // A line of nothing but the end of a colour is the builder's, too.
    if (LABEL_STEP.test(plain) || (plain === '' && text !== '')) return
    const begun = /^Step (\d+)\/(\d+) : (.*)$/s.exec(plain)
    if (begun) {
      step = `[${begun[1]}/${begun[2]}] ${begun[3]}`
      lines = []
      onLog({ stream: 'system', text: clampMessage(step) })
    } else if (BUILDER_WORDS.test(plain)) {
      if (/Using cache/.test(plain)) onLog({ stream: 'system', text: '(cached)' })
    } else if (text.startsWith('[Warning]')) onLog({ stream: 'system', text })
    else print('stdout', text.replace(RESET, ''))
  })
  // Each write of a command to its error output comes in red, and may come between two parts of a
  // line of its other output.
  const errors = createLineSplitter((text) => {
    const plain = stripColours(text)
    if (plain !== '' || text === '') print('stderr', plain)
  })
  const endAll = () => {
    splitter.end()
    errors.end()
  }
  return {
    /** Resolves once all of it was handed on. */
    async text(text: string): Promise<void> {
      // A command may end without a newline; the builder's next words are then no part of its last
      // line.
      if (BUILDER_WORDS.test(text)) endAll()
      const target = text.startsWith(RED) ? errors : splitter
      const bytes = Buffer.from(text)
      for (let at = 0; at < bytes.length; at += PART_BYTES) {
        target.write(bytes.subarray(at, at + PART_BYTES))
        const rest = pace.rest()
        if (rest) await rest
      }
    },
    status(text: string): void {
      if (seen.has(text)) return
      seen.add(text)
      onLog({ stream: 'system', text: clampMessage(text) })
    },
    end: endAll,
    lastStep: () => step,
    /** What the step printed last that has run last. */
    linesOfStep: (): readonly string[] => lines,
  }
}
