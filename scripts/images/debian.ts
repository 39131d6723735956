import { mkdtemp, rm } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { must, run } from './command.ts'

/** Where a suite's packages come from: lines of a sources.list. */
export type Sources = readonly string[]

/** One repository that this machine's apt uses. */
export interface AptRepository {
  uri: string
  release: string
  component: string
}

const FORMAT = '$(REPO_URI)|$(RELEASE)|$(COMPONENT)'
const DOWNLOAD = '/usr/lib/apt/apt-helper'

/** Reads what `apt-get indextargets` prints in our format. */
export function parseRepositories(text: string): AptRepository[] {
  return text
    .split('\n')
    .map((line) => line.trim().split('|'))
    .filter((parts) => parts.length === 3)
    .map(([uri = '', release = '', component = '']) => ({ uri, release, component }))
}

/**
 * The repositories of this machine that could carry `suite` as well: the one with its release, the one with
 * the release's updates and the one with its security fixes. The mirror is the machine's own, so a closed
 * network needs no setting.
 */
export function candidateSources(
  repositories: readonly AptRepository[],
  suite: string,
): { uri: string; release: string }[] {
  const debian = repositories.filter((repository) => repository.component === 'main')
  const main = debian.find(
    (repository) => !repository.release.includes('-') && !repository.release.includes('/'),
  )
  const security = debian.find((repository) => repository.release.endsWith('-security'))
  if (!main) return []
  return [
    { uri: main.uri, release: suite },
    { uri: main.uri, release: `${suite}-updates` },
    ...(security ? [{ uri: security.uri, release: `${suite}-security` }] : []),
  ]
}

/** Asks apt for the mirror and keeps the candidates that it really has. */
export async function findSources(suite: string, mirror?: string): Promise<Sources> {
  const targets = await run(['apt-get', 'indextargets', '--format', FORMAT, 'Created-By: Packages'])
  if (targets.code !== 0)
    throw new Error(
      'Images can be made on Debian only: this machine has no apt. Pull them from a registry instead.',
    )
  const repositories = mirror
    ? [{ uri: mirror, release: suite, component: 'main' }]
    : parseRepositories(targets.stdout)
  const candidates = candidateSources(repositories, suite)
  const present = await Promise.all(
    candidates.map(async (candidate) => await exists(candidate.uri, candidate.release)),
  )
  const lines = candidates
    .filter((_, index) => present[index])
    .map(({ uri, release }) => `deb ${uri} ${release} main`)
  if (!present[0])
    throw new Error(
      `The mirror in this machine's apt sources has no suite "${suite}". Name one that has it with --mirror.`,
    )
  return lines
}

async function exists(uri: string, release: string): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), 'portreeve-release-'))
  try {
    const { code } = await run(
      [
        DOWNLOAD,
        'download-file',
        `${uri.replace(/\/$/, '')}/dists/${release}/InRelease`,
        join(folder, 'InRelease'),
      ],
      { timeout_ms: 60_000 },
    )
    return code === 0
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Makes sure that the tool is there which unpacks a Debian system into a file. */
export async function ensureBootstrapTool(say: (line: string) => void): Promise<void> {
  if (existsSync('/usr/bin/mmdebstrap')) return
  if (process.getuid?.() !== 0)
    throw new Error('mmdebstrap is not installed. Run `apt-get install mmdebstrap` as root, then try again.')
  say('installing mmdebstrap')
  const env = { DEBIAN_FRONTEND: 'noninteractive' }
  const install = ['apt-get', 'install', '--yes', '--quiet', '--no-install-recommends', 'mmdebstrap']
  // Package lists of a fresh machine may be missing or old; they are only fetched when the first try shows
  // it.
  if ((await run(install, { env })).code === 0) return
  await must(['apt-get', 'update', '--quiet'], { env })
  await must(install, { env })
}

/** Settings of apt on this machine that a container needs too in order to reach the mirror. */
export async function proxySettings(): Promise<string> {
  const { stdout } = await run(['apt-config', 'dump'])
  return stdout
    .split('\n')
    .filter((line) => /^Acquire::https?::Proxy(::\S+)? "[^"]+";$/.test(line))
    .join('\n')
}

/** Unpacks a minimal Debian into a tar file. `hook` runs outside with the new root as its argument. */
export async function bootstrap(
  suite: string,
  sources: Sources,
  hook: string,
  tar: string,
  env: Record<string, string>,
  signal?: AbortSignal,
): Promise<void> {
  const excluded = ['/usr/share/doc/*', '/usr/share/man/*', '/usr/share/locale/*']
  await must(
    [
      'mmdebstrap',
      '--quiet',
      '--variant=minbase',
      ...(process.getuid?.() === 0 ? ['--mode=root'] : []),
      '--aptopt=Acquire::Languages "none"',
      '--aptopt=APT::Install-Recommends "false"',
      '--dpkgopt=force-unsafe-io',
      ...excluded.map((path) => `--dpkgopt=path-exclude=${path}`),
      '--include=apt,ca-certificates,curl',
      `--customize-hook=${hook}`,
      suite,
      tar,
      ...sources,
    ],
    { env, signal, timeout_ms: 10 * 60_000 },
  )
}
