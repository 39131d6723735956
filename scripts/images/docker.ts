import { existsSync } from 'node:fs'
import { must, run, type RunOptions } from './command.ts'

/** What the engine knows about an image it has. */
export interface StoredImage {
  id: string
  size_bytes: number
  labels: Record<string, string>
}

/** `unreachable` means that no registry answered at all, so that asking for the next image is pointless. */
export type PullOutcome = 'pulled' | 'refused' | 'unreachable'

/** The few commands of the engine's command line that making images needs. */
export interface Docker {
  /** Fails with a sentence when no engine answers. */
  check(): Promise<void>
  find(image: string): Promise<StoredImage | undefined>
  pull(image: string): Promise<PullOutcome>
  /**
   * Makes an image of a tar file; a file, because an import fed by a failing pipe leaves an empty image that
   * looks valid.
   */
  import(tar: string, image: string, changes: readonly string[]): Promise<void>
  build(folder: string, image: string, build_args: Record<string, string>): Promise<void>
  /** Adds labels to an image under the same name. */
  label(image: string, labels: Record<string, string>): Promise<void>
  tag(image: string, name: string): Promise<void>
  /** Runs one command in the image, without network, and returns what it printed. */
  output(image: string, command: readonly string[]): Promise<string>
  remove(image: string): Promise<void>
}

const REACH_MS = 20_000
const PULL_MS = 15 * 60_000

/**
 * Debian's client is preferred: another `docker` that comes first on PATH may be a wrapper without an engine.
 */
export const DOCKER_COMMAND = existsSync('/usr/bin/docker') ? '/usr/bin/docker' : 'docker'

export function createDocker(signal?: AbortSignal, command: string = DOCKER_COMMAND): Docker {
  const options = (more: RunOptions = {}): RunOptions => ({ signal, ...more })
  const find = async (image: string): Promise<StoredImage | undefined> => {
    const { code, stdout } = await run([command, 'image', 'inspect', image], options())
    if (code !== 0) return undefined
    const [found] = JSON.parse(stdout) as {
      Id: string
      Size: number
      Config?: { Labels?: Record<string, string> | null } | null
    }[]
    return found && { id: found.Id, size_bytes: found.Size, labels: found.Config?.Labels ?? {} }
  }
  return {
    async check() {
      const { code, stderr } = await run(
        [command, 'version', '--format', '{{.Server.Version}}'],
        options({ timeout_ms: 20_000 }),
      )
      if (code !== 0)
        throw new Error(
          `No container engine answers. Start it, or set DOCKER_HOST. The engine's client said: ${stderr.trim().split('\n').at(-1) ?? ''}`,
        )
    },
    find,
    pull: (image) => pull(command, image, signal),
    async import(tar, image, changes) {
      await must(
        [command, 'import', ...changes.flatMap((change) => ['--change', change]), tar, image],
        options(),
      )
    },
    async build(folder, image, build_args) {
      const args = Object.entries(build_args).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`])
      await must([command, 'build', '--force-rm', '--tag', image, ...args, folder], options())
    },
    async label(image, labels) {
      // In one line: each is a container and a layer of its own.
      const set = Object.entries(labels).map(([name, value]) => `${name}=${JSON.stringify(value)}`)
      await must(
        [command, 'build', '--quiet', '--tag', image, '-'],
        options({ input: `FROM ${image}\nLABEL ${set.join(' ')}\n` }),
      )
    },
    async tag(image, name) {
      await must([command, 'tag', image, name], options())
    },
    async output(image, [entrypoint = 'true', ...args]) {
      const finished = await run(
        [command, 'run', '--rm', '--network', 'none', '--entrypoint', entrypoint, image, ...args],
        options({ timeout_ms: 60_000 }),
      )
      if (finished.code !== 0)
        throw new Error(`${image} cannot run \`${entrypoint}\`: ${finished.stderr.trim()}`)
      return `${finished.stdout}\n${finished.stderr}`
    },
    async remove(image) {
      await run([command, 'image', 'rm', '--no-prune', image], options())
    },
  }
}

/** Pulls with two clocks: a short one until the registry answers at all, a long one for the download. */
async function pull(command: string, image: string, signal: AbortSignal | undefined): Promise<PullOutcome> {
  const reach = new AbortController()
  const timer = setTimeout(() => reach.abort(), REACH_MS)
  const stop = signal ? AbortSignal.any([signal, reach.signal]) : reach.signal
  const { code, stderr } = await run([command, 'pull', image], {
    timeout_ms: PULL_MS,
    signal: stop,
    on_line: () => clearTimeout(timer),
  })
  clearTimeout(timer)
  if (code === 0) return 'pulled'
  return reach.signal.aborted ? 'unreachable' : judgePull(stderr)
}

/**
 * A registry that says "no such image" or "not allowed" was reached; everything else is about the way to it.
 */
export function judgePull(stderr: string): PullOutcome {
  return /manifest unknown|not found|pull access denied|unauthorized|no matching manifest|toomanyrequests/i.test(
    stderr,
  ) && !/no such host|lookup /i.test(stderr)
    ? 'refused'
    : 'unreachable'
}
