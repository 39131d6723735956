import { commandArguments } from './commands.ts'
import { SECRETS_FILE } from './plan.ts'

/** One instruction of a Dockerfile, as data. */
export type Instruction =
  | { kind: 'arg'; name: string }
  | { kind: 'env'; values: Readonly<Record<string, string>> }
  | { kind: 'workdir'; path: string }
  | { kind: 'copy'; sources: readonly string[]; target: string; from?: string; owner?: string }
  /**
   * A shell line. It may come from a user; with `secrets` it runs with the variables of `SECRETS_FILE`. `caches`
   * are absolute folders whose content is kept from build to build of the app, outside of the image.
   */
  | { kind: 'run'; line: string; secrets?: boolean; caches?: readonly string[] }
  | { kind: 'user'; name: string }
  | { kind: 'expose'; port: number }
  | { kind: 'stop_signal'; name: string }
  /** What the base image would put in front of commands is left out. */
  | { kind: 'no_entrypoint' }
  /** The start command, a shell line. It may come from a user. */
  | { kind: 'start'; line: string }

/** One `FROM` and what follows. */
export interface Stage {
  name: string
  image: string
  instructions: readonly Instruction[]
}

const HEADER =
  '# Made by Portreeve from the files of the repository. To take over, commit it as `Dockerfile`.'
const IMAGE = /^[a-z0-9][a-z0-9./_-]*(:[A-Za-z0-9._-]+)?$/
const PLAIN_PATH = /^[A-Za-z0-9_./][A-Za-z0-9_@+~./-]*$/
/** A folder that is written into a flag as it is: no comma, which would begin another field, and no way up. */
const CACHE_PATH = /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._@+-]+)+$/
/** A line that means the same to a shell and to every Dockerfile parser, with or without here-documents. */
const PLAIN_LINE = /^[A-Za-z][A-Za-z0-9 ._/:@=,&+-]*[A-Za-z0-9._/:@=]$/

/**
 * The text of a Dockerfile that the classic builder and BuildKit read alike. Everything that is not plain is
 * written as JSON, in which a line break is two characters: no command, path or value can start an
 * instruction of its own.
 */
export function renderDockerfile(stages: readonly Stage[]): string {
  const parts = stages.map((stage) =>
    [
      `FROM ${checked(stage.image, IMAGE)} AS ${checked(stage.name, /^[a-z]+$/)}`,
      ...stage.instructions.map(renderInstruction),
    ].join('\n'),
  )
  return `${HEADER}\n${parts.join('\n\n')}\n`
}

function renderInstruction(instruction: Instruction): string {
  switch (instruction.kind) {
    case 'arg':
      return `ARG ${checked(instruction.name, /^[A-Za-z_][A-Za-z0-9_]*$/)}`
    case 'env':
      return `ENV ${Object.entries(instruction.values)
        .map(([key, value]) => `${checked(key, /^[A-Za-z_][A-Za-z0-9_]*$/)}=${quotedValue(value)}`)
        .join(' ')}`
    case 'workdir':
      return `WORKDIR ${checked(instruction.path, /^\/[A-Za-z0-9._/@+-]*$/)}`
    case 'copy':
      return renderCopy(instruction)
    case 'run':
      return renderRun(instruction)
    case 'user':
      return `USER ${checked(instruction.name, /^[a-z0-9:]+$/)}`
    case 'expose':
      return `EXPOSE ${checked(String(instruction.port), /^\d{1,5}$/)}`
    case 'stop_signal':
      return `STOPSIGNAL ${checked(instruction.name, /^SIG[A-Z]+$/)}`
    case 'no_entrypoint':
      return 'ENTRYPOINT []'
    case 'start':
      return `CMD ${json(commandArguments(instruction.line))}`
  }
}

function renderRun({ line, secrets, caches = [] }: Extract<Instruction, { kind: 'run' }>): string {
  // The engine keeps each app's mounts apart, whatever their ids are: see `mount_scope` of a build.
  const mounts = caches.map(
    (path) => `--mount=type=cache,sharing=locked,target=${checked(path, CACHE_PATH)} `,
  )
  if (secrets) mounts.unshift(`--mount=type=secret,id=${SECRETS_FILE} `)
  const run = `RUN ${mounts.join('')}`
  if (secrets) return `${run}${json(['/bin/sh', '-c', `. /run/secrets/${SECRETS_FILE}\n${line}`])}`
  return run + (PLAIN_LINE.test(line) ? line : json(['/bin/sh', '-c', line]))
}

function renderCopy({ sources, target, from, owner }: Extract<Instruction, { kind: 'copy' }>): string {
  const flags = [
    from === undefined ? '' : `--from=${checked(from, /^[a-z0-9][A-Za-z0-9._/:-]*$/)} `,
    owner === undefined ? '' : `--chown=${checked(owner, /^\d+:\d+$/)} `,
  ]
  const paths = [...sources, target]
  return `COPY ${flags.join('')}${paths.every((path) => PLAIN_PATH.test(path)) ? paths.join(' ') : json(paths)}`
}

/**
 * Whether a path of the repository can be named in a COPY: no wildcard, variable, quote or control character.
 */
export function isCopyable(path: string): boolean {
  return /^[A-Za-z0-9_@+~. /()-]+$/.test(path) && !path.startsWith('-')
}

/**
 * JSON in pure ASCII, so that no line separator of Unicode reaches a parser that takes it for a line break.
 */
function json(words: readonly string[]): string {
  const text = `[${words.map((word) => JSON.stringify(word)).join(', ')}]`
  return text.replace(
    /[\u007f-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** A value of ENV; `$PATH` at its end or start is the one variable that our own values use. */
function quotedValue(value: string): string {
  if (/[\0-\x1f\x7f]/.test(value)) throw new RangeError('A value of ENV has a control character.')
  return `"${value
    .replaceAll('\\', '\\\\')
    .replaceAll('"', '\\"')
    .replace(/\$(?!PATH\b)/g, '\\$')}"`
}

function checked(text: string, pattern: RegExp): string {
  if (!pattern.test(text) || text.includes('\n'))
    throw new RangeError(`A Dockerfile cannot hold ${JSON.stringify(text)} here.`)
  return text
}
