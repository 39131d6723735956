import { EngineError } from '../engine.ts'
import { diskFull, engineWords, saysDiskFull } from '../failures.ts'
import { stripColours } from '../containers/log-lines.ts'
import { knownReason } from './known-reasons.ts'
import { clampMessage, endsOf } from '../messages.ts'
import { missingProgram, ownCheck, tellingLines } from './telling-lines.ts'

/** Everything that is known about a build that failed. */
export interface BuildEvidence {
  /** What the builder reported as the reason. */
  message: string
  /** The step that failed, as the builder names it, e.g. `[2/3] RUN npm ci`. */
  step?: string
  /** What the step printed last. */
  lines?: readonly string[]
  dockerfile: string
  memory_bytes: number
  /**
   * `killed`: the kernel killed a process of a build for memory; `limit_hit`: the limit was reached;
   * `unknown`: nobody counted.
   */
  memory: 'killed' | 'limit_hit' | 'fine' | 'unknown'
}

const EXIT_CODE = /(?:exit code: |non-zero code: )(\d+)/
const COMMAND = [
  /executor failed running \[(.*?)\]: /s,
  /process "(.*?)" did not complete/s,
  /The command '(.*?)' returned/s,
]
/** What Portreeve puts before a command that may read secret variables; newer builders quote the line break. */
const SOURCED = /^\. \/run\/secrets\/portreeve-variables(?:\n|\\n)/
const KILLED = 137
const ABORTED = 134
const NOT_FOUND = 127
const CLOSED_NETWORK =
  'Check the name and tag of the image. In a closed network, `npm run images` makes the usual base images without a registry.'

/** Why a build failed, in one sentence that a user can act on. Where no command failed, its log is what the builder said. */
export function buildError(evidence: BuildEvidence): EngineError {
  // Between the ends stands what a Dockerfile says.
  const text = endsOf(stripColours(evidence.message))
  const error = explained(text, evidence)
  if (EXIT_CODE.test(text) || error.code === 'disk_full') return error
  const log = tellingLines(text.split('\n'))
  return new EngineError(error.code, error.message, error.hint, { cause: error.cause, log })
}

function explained(text: string, evidence: BuildEvidence): EngineError {
  const cause = new Error(text)
  if (saysDiskFull(text)) return diskFull(cause)
  const exit_code = EXIT_CODE.exec(text)?.[1]
  if (exit_code !== undefined) return commandError(text, Number(exit_code), evidence, cause)
  return (
    secretError(text, cause) ??
    syntaxLineError(text, evidence, cause) ??
    addError(text, cause) ??
    imageError(text, evidence, cause) ??
    copyError(text, evidence, cause) ??
    otherError(text, cause)
  )
}

function commandError(
  text: string,
  exit_code: number,
  { memory, memory_bytes, lines = [] }: BuildEvidence,
  cause: Error,
): EngineError {
  const checked = ownCheck(lines)
  const log = tellingLines(lines)
  if (checked) return new EngineError('build_failed', checked.message, checked.hint, { cause, log })
  const raw = COMMAND.map((expression) => expression.exec(text)?.[1]).find((found) => found !== undefined)
  const command = raw ? `The command \`${commandText(raw)}\`` : 'A command of the Dockerfile'
  const limit = `${Math.round(memory_bytes / 1024 ** 2)} MiB`
  if (memory === 'killed' || (exit_code === KILLED && memory !== 'fine')) {
    return new EngineError(
      'out_of_memory',
      `${command} was killed with exit code ${exit_code}, because the build needed more memory than its limit of ${limit}.`,
      'Raise the memory limit for builds, or let the build use less memory.',
      { cause, log },
    )
  }
  // Some package managers end with a code of their own.
  const missing = missingProgram(exit_code === NOT_FOUND ? lines : log.slice(-2))
  if (missing !== undefined)
    return new EngineError(
      'build_failed',
      `The program \`${missing}\` is not installed: ${lowered(command)} failed with exit code ${exit_code}.`,
      programHint(missing),
      { cause, log },
    )
  return new EngineError(
    'build_failed',
    `${command} failed with exit code ${exit_code}.`,
    commandHint(exit_code, lines),
    { cause, log },
  )
}

const lowered = (sentence: string): string => sentence.charAt(0).toLowerCase() + sentence.slice(1)

/** What is likely to be the way out when a program is missing while an image is built. */
function programHint(program: string): string {
  if (program.startsWith('./') || program.startsWith('/'))
    return 'The file must be in the repository or be made by an earlier step, and begin with the line of an interpreter that the image has.'
  return `Add the package that brings \`${program}\` to the dependencies of the project, or install it with a Dockerfile of your own.`
}

function commandHint(exit_code: number, lines: readonly string[]): string {
  const known = knownReason(lines.map(stripColours), 'build')
  if (known !== undefined) return known
  if (exit_code === ABORTED)
    return 'The program aborted itself; Node does that when its heap is full: set NODE_OPTIONS=--max-old-space-size for the build.'
  if (exit_code === NOT_FOUND) return 'The program is not installed in the image at this step.'
  return 'The last lines of the build log say why.'
}

/** The user's command without the shell around it and without the line breaks of the Dockerfile. */
function commandText(raw: string): string {
  return clampMessage(
    raw
      .replace(/^\/bin\/(?:ba|a)?sh (?:-[a-z]+ )*-c /, '')
      .replace(SOURCED, '')
      .replace(/\\"/g, '"')
      .replace(/\\\n/g, ' ')
      .replace(/[`]/g, "'"),
    120,
  )
}

function syntaxLineError(text: string, { dockerfile }: BuildEvidence, cause: Error): EngineError | undefined {
  const frontend = /^#[ \t]*syntax[ \t]*=[ \t]*(\S+)/im.exec(dockerfile)?.[1]
  if (!frontend) return undefined
  const name = frontend.split(/[:@]/)[0]!
  if (!text.includes(name) && !/gateway\.v0|frontend/i.test(text)) return undefined
  if (
    !/not found|denied|dial tcp|lookup|no such host|timeout|refused|failed to do request|unexpected status/i.test(
      text,
    )
  )
    return undefined
  return new EngineError(
    'image_not_found',
    `The \`# syntax=${clampMessage(frontend, 80)}\` line of the Dockerfile needs an image that cannot be fetched from its registry.`,
    'Remove the `# syntax=` line: the engine reads usual Dockerfiles without it.',
    { cause },
  )
}

/** Something that `ADD` fetches, by itself or by where it redirects to: registries are asked below /v2/. */
function addError(text: string, cause: Error): EngineError | undefined {
  const [, host, path = ''] =
    /(?:^|failed to load cache key: |ADD failed: )Get "?https?:\/\/([^/"\s]+)([^"\s]*)/i.exec(text) ?? []
  if (host === undefined || path.startsWith('/v2/')) return undefined
  return new EngineError(
    'build_failed',
    `The Dockerfile adds something from ${clampMessage(host, 120)}, which the container engine cannot reach.`,
    'An address that is not public is refused, also where a public one redirects to it. Fetch it in a step with RUN curl, or copy the file into the repository.',
    { cause },
  )
}

function imageError(
  text: string,
  { step, dockerfile }: BuildEvidence,
  cause: Error,
): EngineError | undefined {
  const in_step = /load metadata for (\S+)|FROM (\S+)/i.exec(step ?? '')
  const about_image =
    in_step !== null ||
    /pull access denied|manifest (?:for|unknown)|failed to resolve source metadata|registry/i.test(text)
  const missing = /not found|pull access denied|does not exist|manifest unknown/i.test(text)
  const unreachable =
    /dial tcp|lookup |no such host|i\/o timeout|connection refused|failed to do request|TLS handshake|x509|network is unreachable/i.test(
      text,
    )
  const denied = /unauthorized|authentication required|denied: /i.test(text)
  if (!(missing || unreachable || denied) || !(about_image || unreachable)) return undefined
  const named =
    in_step?.[1] ??
    in_step?.[2] ??
    /pull access denied for ([^\s,]+)/.exec(text)?.[1] ??
    /^FROM\s+(?:--\S+\s+)*(\S+)/im.exec(dockerfile)?.[1] ??
    'of the Dockerfile'
  const image = clampMessage(
    named.replace(/^docker\.io\/(?:library\/)?/, '').replace(/@sha256:[0-9a-f]+$/, ''),
    120,
  )
  if (denied && !missing)
    return new EngineError(
      'image_denied',
      `The registry refused access to the base image ${image}.`,
      'Check the login that is stored for this registry; an administrator changes it under registries.',
      { cause },
    )
  const reason = unreachable
    ? 'is not on this server, and its registry cannot be reached'
    : 'does not exist, or the registry shows it only after a login'
  return new EngineError('image_not_found', `The base image ${image} ${reason}.`, CLOSED_NETWORK, {
    cause,
  })
}

function secretError(text: string, cause: Error): EngineError | undefined {
  const missing = /secret (\S+)(?:: | )not found/i.exec(text)?.[1]
  if (missing === undefined) return undefined
  return new EngineError(
    'build_failed',
    `The Dockerfile asks for the build secret \`${clampMessage(missing, 80)}\`, which is not set.`,
    'Set the secret for builds, or remove it from the Dockerfile.',
    { cause },
  )
}

function copyError(text: string, { step }: BuildEvidence, cause: Error): EngineError | undefined {
  const path =
    /"?\/?([^"\s]+)"? not found: not found/.exec(text)?.[1] ??
    /"\/([^"]+)": not found/.exec(text)?.[1] ??
    /(?:COPY|ADD) failed: .*?stat ([^\s:]+)/.exec(text)?.[1]?.replace(/^.*\/docker-builder\d+\//, '')
  if (path === undefined && !/failed to compute cache key|(?:COPY|ADD) failed/.test(text)) return undefined
  const what = path === undefined ? 'a file' : `\`${clampMessage(path, 120)}\``
  const from = /\b(?:COPY|ADD) (?:--\S+ )*--from=(\S+)/.exec(step ?? '')?.[1]
  if (from !== undefined)
    return new EngineError(
      'build_failed',
      from === 'build' && path !== undefined
        ? `The build left no \`/${clampMessage(path, 120)}\`.`
        : `The Dockerfile copies ${what} from ${clampMessage(from, 80)}, which has no such file.`,
      'Look at the build log for what the build wrote, and where; correct the build command, or the path.',
      { cause },
    )
  return new EngineError(
    'build_failed',
    `The Dockerfile copies ${what}, which is not in the source or is left out by .dockerignore.`,
    'Commit the file, or change the COPY line.',
    { cause },
  )
}

function otherError(text: string, cause: Error): EngineError {
  const words = engineWords(
    text.replace(
      /^(?:failed to solve(?: with frontend \S+)?: |failed to create LLB definition: |rpc error: code = \w+ desc = )+/g,
      '',
    ),
  )
  const parse =
    /dockerfile parse error|unknown instruction|cannot be empty|no instructions|no build stage|unknown flag|requires (?:at least|exactly)/i.test(
      text,
    )
  if (parse)
    return new EngineError(
      'build_failed',
      `The Dockerfile is not valid: ${words}`,
      'Correct the Dockerfile.',
      {
        cause,
      },
    )
  return new EngineError('build_failed', `The build failed: ${words}`, 'The build log has more.', {
    cause,
  })
}
