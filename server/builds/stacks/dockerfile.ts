import { posix } from 'node:path'
import { DetectionError, type BuildPlan, type SourceTree } from '../plan.ts'
import type { DeclaredSettings } from '../declared.ts'
import { declaredExplanations } from '../repository-settings.ts'
import { TCP, because } from './stack.ts'

const NAMES = ['Dockerfile', 'Containerfile', 'dockerfile']
const OTHER_NAMES = [
  'Dockerfile.prod',
  'Dockerfile.production',
  'Dockerfile.web',
  'Dockerfile.app',
  'docker/Dockerfile',
  '.docker/Dockerfile',
  'build/Dockerfile',
  'deploy/Dockerfile',
  'docker/Dockerfile.prod',
]
const DEFAULT_PORT = 3000

/**
 * The repository's own Dockerfile, unless another stack was declared: its authors know better than a
 * detector. Only the names of the root are taken without being asked; see `otherDockerfile` for the rest.
 */
export function findDockerfile(tree: SourceTree, declared: DeclaredSettings): string | undefined {
  if (declared.dockerfile_path !== undefined) {
    const path = posix.normalize(declared.dockerfile_path.value.replaceAll('\\', '/')).replace(/^\.\//, '')
    if (tree.read(path) !== undefined) return path
    throw new DetectionError(
      `There is no readable file ${JSON.stringify(path)} in the repository.`,
      'Correct the Dockerfile path of the app; it is relative to the base directory.',
      [path],
    )
  }
  if (declared.stack !== undefined && declared.stack.value !== 'dockerfile') return undefined
  const found = written(tree, NAMES) ?? (declared.stack === undefined ? undefined : otherDockerfile(tree))
  if (found === undefined && declared.stack !== undefined) {
    throw new DetectionError(
      'The stack is set to dockerfile, but the repository has none.',
      'Add a Dockerfile or set its path.',
      NAMES,
    )
  }
  return found
}

const written = (tree: SourceTree, names: readonly string[]) =>
  names.find((name) => (tree.read(name) ?? '').trim() !== '')

/**
 * A Dockerfile under another name or in a folder: what is left when the root has none and no stack is
 * recognised. It is built from the root.
 */
export const otherDockerfile = (tree: SourceTree): string | undefined => written(tree, OTHER_NAMES)

/** The plan around a Dockerfile that is used as it is. */
export function planDockerfile(tree: SourceTree, declared: DeclaredSettings, path: string): BuildPlan {
  const dockerfile = tree.read(path) ?? ''
  const exposed = exposedPort(dockerfile)
  const port = declared.port?.value ?? exposed ?? DEFAULT_PORT
  const start_command =
    declared.start_command?.source === 'app settings' || declared.start_command?.source === 'portreeve.json'
      ? declared.start_command.value
      : null
  return {
    stack: 'dockerfile',
    framework: null,
    version: null,
    package_manager: null,
    install_command: null,
    build_command: null,
    // A Procfile beside a Dockerfile belongs to another platform: the image's own command is what its authors
    // run.
    start_command,
    release_command: declared.release_command?.value ?? null,
    port,
    health_check: declared.health_check?.value ?? TCP,
    dockerfile,
    processes: {},
    web: true,
    cron_jobs: declared.cron_jobs?.value ?? [],
    explanation: [
      ...declaredExplanations(declared).filter(
        ({ field }) =>
          field !== 'processes' &&
          (!field.endsWith('_command') || field === 'release_command' || start_command !== null),
      ),
      ...because('stack', 'dockerfile', path),
      ...(declared.port === undefined
        ? because(
            'port',
            String(port),
            exposed === undefined ? 'default: the Dockerfile has no EXPOSE' : `EXPOSE in ${path}`,
          )
        : []),
    ],
  }
}

/**
 * The first TCP port of the last stage that exposes one. Knows `EXPOSE 80/tcp 443`, `$PORT` with a default in
 * ARG or ENV.
 */
export function exposedPort(dockerfile: string): number | undefined {
  const variables = new Map<string, string>()
  let port: number | undefined
  for (const raw of dockerfile.split(/\r?\n/)) {
    const line = raw.trim()
    const [instruction, ...words] = line.split(/[ \t]+/)
    const name = instruction?.toUpperCase()
    if (name === 'FROM') port = undefined
    if (name === 'ARG' || name === 'ENV') rememberVariables(variables, words)
    if (name !== 'EXPOSE') continue
    const found = words.map((word) => portOf(word, variables)).find((value) => value !== undefined)
    port ??= found
  }
  return port ?? anyExposed(dockerfile, variables)
}

function anyExposed(dockerfile: string, variables: ReadonlyMap<string, string>): number | undefined {
  const line = /^[ \t]*EXPOSE[ \t]+(.{1,200})$/im.exec(dockerfile)?.[1]
  return line
    ?.trim()
    .split(/[ \t]+/)
    .map((word) => portOf(word, variables))
    .find((value) => value !== undefined)
}

function rememberVariables(variables: Map<string, string>, words: string[]): void {
  if (words.length === 2 && !words[0]!.includes('=')) variables.set(words[0]!, words[1]!)
  for (const word of words) {
    const [key, value] = [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]
    if (word.includes('=')) variables.set(key, value.replace(/^["']|["']$/g, ''))
  }
}

function portOf(word: string, variables: ReadonlyMap<string, string>): number | undefined {
  const bare = word.replace(/^["']|["']$/g, '')
  if (bare.endsWith('/udp')) return undefined
  const variable = /^\$\{?([A-Za-z_][A-Za-z0-9_]*)(?::-(\d+))?\}?(?:\/tcp)?$/.exec(bare)
  const text =
    variable === null ? bare.replace(/\/tcp$/, '') : (variables.get(variable[1]!) ?? variable[2] ?? '')
  const port = /^\d{1,5}/.exec(text)?.[0]
  return port !== undefined && Number(port) > 0 && Number(port) < 65_536 ? Number(port) : undefined
}
