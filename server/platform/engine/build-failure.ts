import { EngineError } from './engine.ts'
import { diskFull, engineWords, saysDiskFull } from './failures.ts'
import { stripColours } from './log-lines.ts'
import { clampMessage } from './messages.ts'

/** Everything that is known about a build that failed. */
export interface BuildEvidence {
  /** What the builder reported as the reason. */
  message: string
  /** The step that failed, as the builder names it, e.g. `[2/3] RUN npm ci`. */
  step?: string
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
const KILLED = 137
const ABORTED = 134
const CLOSED_NETWORK =
  'Check the name and tag of the image. In a closed network, `npm run images` makes the usual base images without a registry.'

/** Why a build failed, in one sentence that a user can act on. */
export function buildError(evidence: BuildEvidence): EngineError {
  const text = stripColours(evidence.message)
  const cause = new Error(text)
  if (saysDiskFull(text)) return diskFull(cause)
  const exit_code = EXIT_CODE.exec(text)?.[1]
  if (exit_code !== undefined) return commandError(text, Number(exit_code), evidence, cause)
  return (
    secretError(text, cause) ??
    syntaxLineError(text, evidence, cause) ??
    imageError(text, evidence, cause) ??
    copyError(text, cause) ??
    otherError(text, cause)
  )
}

function commandError(
  text: string,
  exit_code: number,
  { memory, memory_bytes }: BuildEvidence,
  cause: Error,
): EngineError {
  const raw = COMMAND.map((expression) => expression.exec(text)?.[1]).find((found) => found !== undefined)
  const command = raw ? `The command \`${commandText(raw)}\`` : 'A command of the Dockerfile'
  const limit = `${Math.round(memory_bytes / 1024 ** 2)} MiB`
  if (memory === 'killed' || (exit_code === KILLED && memory !== 'fine')) {
    return new EngineError(
      'out_of_memory',
      `${command} was killed with exit code ${exit_code}, because the build needed more memory than its limit of ${limit}.`,
      'Raise the memory limit for builds, or let the build use less memory.',
      { cause },
    )
  }
  const hint =
    exit_code === ABORTED
      ? 'The program aborted itself; Node does that when its heap is full: set NODE_OPTIONS=--max-old-space-size for the build.'
      : exit_code === 127
        ? 'The program is not installed in the image at this step.'
        : 'The last lines of the build log say why.'
  return new EngineError('build_failed', `${command} failed with exit code ${exit_code}.`, hint, {
    cause,
  })
}

/** The user's command without the shell around it and without the line breaks of the Dockerfile. */
function commandText(raw: string): string {
  return clampMessage(
    raw
      .replace(/^\/bin\/(?:ba|a)?sh (?:-[a-z]+ )*-c /, '')
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

function copyError(text: string, cause: Error): EngineError | undefined {
  const path =
    /"?\/?([^"\s]+)"? not found: not found/.exec(text)?.[1] ??
    /"\/([^"]+)": not found/.exec(text)?.[1] ??
    /(?:COPY|ADD) failed: .*?stat ([^\s:]+)/.exec(text)?.[1]?.replace(/^.*\/docker-builder\d+\//, '')
  if (path === undefined && !/failed to compute cache key|(?:COPY|ADD) failed/.test(text)) return undefined
  const what = path === undefined ? 'a file' : `\`${clampMessage(path, 120)}\``
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
