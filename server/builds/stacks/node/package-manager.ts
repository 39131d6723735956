import semver from 'semver'
import type { SourceTree } from '../../plan.ts'
import { firstLine, joinPath } from '../../tree-queries.ts'
import { lockDrift } from './lock-drift.ts'
import { at, readToml, textAt } from '../../text-formats.ts'
import { toolVersion } from '../../versions.ts'
import type { Manifest } from './manifest.ts'

/** Program that installs and runs packages. */
export type PackageManagerName = 'npm' | 'pnpm' | 'yarn' | 'bun'

/** The package manager of a repository and how it is called. */
export interface PackageManager {
  name: PackageManagerName
  /** Version or major, checked to be digits and dots. */
  version: string | undefined
  /** Yarn 2 or later. */
  berry: boolean
  source: string
  lockfile: string | undefined
  /** Lines that put it into the image. */
  setup: readonly string[]
  install: string
  /** Why the install does not insist on the lockfile, when it does not fit the manifest. */
  warning?: string
  /** Version of Node that this generation of the program, or of its lockfile, runs on. */
  node: string | undefined
}

const LOCKFILES: readonly (readonly [string, PackageManagerName])[] = [
  ['pnpm-lock.yaml', 'pnpm'],
  ['bun.lock', 'bun'],
  ['bun.lockb', 'bun'],
  ['yarn.lock', 'yarn'],
  ['package-lock.json', 'npm'],
  ['npm-shrinkwrap.json', 'npm'],
]

/**
 * Which package manager: the `packageManager` field, then `devEngines`, then the lockfile, then files only
 * one of them has, then `engines`.
 */
export function choosePackageManager(
  tree: SourceTree,
  manifest: Manifest,
  members: readonly Manifest[] = [],
): PackageManager {
  const { name, version, source } = declaredManager(tree, manifest)
  const lockfile = LOCKFILES.find(([file, owner]) => owner === name && tree.has(file))?.[0]
  const berry = name === 'yarn' && isBerry(tree, version)
  const known = version ?? impliedVersion(tree, name, berry)
  const drift = lockfile === undefined ? undefined : lockDrift(tree, lockfile, manifest, members)
  return {
    name,
    version: known,
    berry,
    source,
    lockfile,
    setup: setupLines(tree, name, known, berry),
    install: installLine(name, berry, drift === undefined ? lockfile : undefined),
    ...(drift === undefined ? {} : { warning: drift }),
    node: nodeOf(name, known),
  }
}

/** Old releases of pnpm do not run on a current Node. */
function nodeOf(name: PackageManagerName, version: string | undefined): string | undefined {
  const found = name === 'pnpm' ? semver.coerce(version) : null
  if (found === null) return undefined
  if (found.major <= 6) return '16'
  // From 8.3.1 on pnpm runs on Node 20.
  const is_old = version!.includes('.') && found.major === 8 && semver.lt(found, '8.3.1')
  return found.major === 7 || is_old ? '18' : undefined
}

function declaredManager(
  tree: SourceTree,
  manifest: Manifest,
): { name: PackageManagerName; version: string | undefined; source: string } {
  const field = /^(npm|pnpm|yarn|bun)@(\d+(?:\.\d+){0,2})(?![\d.])/.exec(
    textAt(manifest.fields, 'packageManager') ?? '',
  )
  if (field !== null)
    return {
      name: field[1] as PackageManagerName,
      version: field[2],
      source: 'packageManager in package.json',
    }
  const asked = (name: PackageManagerName, ...keys: string[]) =>
    versionIn(tree, name, textAt(manifest.fields, ...keys))
  const developed_with = (['npm', 'pnpm', 'yarn', 'bun'] as const).find(
    (name) => name === textAt(manifest.fields, 'devEngines', 'packageManager', 'name'),
  )
  if (developed_with !== undefined)
    return {
      name: developed_with,
      version: asked(developed_with, 'devEngines', 'packageManager', 'version'),
      source: 'devEngines in package.json',
    }
  const engine = (name: PackageManagerName) => asked(name, 'engines', name)
  const named = (name: string) => textAt(manifest.fields, 'engines', name) !== undefined
  const lock = LOCKFILES.find(([file]) => tree.has(file))
  if (lock !== undefined)
    return {
      name: lock[1],
      version: lock[1] === 'npm' ? undefined : (engine(lock[1]) ?? pinned(tree, lock[1])),
      source: lock[0],
    }
  const hints: readonly (readonly [string, PackageManagerName])[] = [
    ['pnpm-workspace.yaml', 'pnpm'],
    ['.pnpmfile.cjs', 'pnpm'],
    ['.yarnrc.yml', 'yarn'],
    ['.yarnrc', 'yarn'],
    ['bunfig.toml', 'bun'],
  ]
  const hint = hints.find(([file]) => tree.has(file))
  if (hint !== undefined) return { name: hint[1], version: engine(hint[1]), source: hint[0] }
  for (const name of ['pnpm', 'yarn', 'bun'] as const) {
    if (named(name)) return { name, version: engine(name), source: 'engines in package.json' }
  }
  return { name: 'npm', version: undefined, source: 'default: no lockfile' }
}

/** Majors that exist, the one that is taken first where nothing says otherwise. */
const MAJORS: Readonly<Record<PackageManagerName, readonly string[]>> = {
  npm: ['10', '11', '9', '8', '7', '6'],
  pnpm: ['9', '10', '8', '7', '6', '5'],
  yarn: ['1', '4', '3', '2'],
  bun: ['1'],
}

/**
 * The version that a field asks for. A range says what is allowed, not what was used: the generation of the
 * lockfile comes first, then the usual one, then the newest that is allowed.
 */
function versionIn(tree: SourceTree, name: PackageManagerName, text: string | undefined): string | undefined {
  if (text === undefined || text.length > 100) return undefined
  const exact = /^[=v ]*(\d+(?:\.\d+){0,2})$/.exec(text.trim())?.[1]
  if (exact !== undefined) return exact
  const minor = /^~\s*v?(\d+\.\d+)(?:\.\d+)?$/.exec(text.trim())?.[1]
  if (minor !== undefined) return minor
  const range = semver.validRange(text)
  if (range === null) return undefined
  // What is fixed up to its major is the newest release of that: npm resolves it.
  const majors = MAJORS[name].filter((major) => semver.intersects(`${major}.x`, range))
  const lowest = semver.minVersion(range)
  if (lowest !== null && majors.length === 1 && majors[0] === String(lowest.major) && !/^>/.test(text.trim()))
    return majors[0]
  const implied = impliedVersion(tree, name, name === 'yarn' && isBerry(tree, undefined))
  return implied !== undefined && majors.includes(implied) ? implied : majors[0]
}

function pinned(tree: SourceTree, name: PackageManagerName): string | undefined {
  const requested =
    (name === 'bun' ? firstLine(tree, '.bun-version') : undefined) ?? toolVersion(tree, name)?.wanted
  return /^v?(\d+(?:\.\d+){0,2})$/.exec(requested ?? '')?.[1]
}

function isBerry(tree: SourceTree, version: string | undefined): boolean {
  if (version !== undefined) return Number(version.split('.')[0]) >= 2
  return tree.has('.yarnrc.yml') || (tree.read('yarn.lock') ?? '').slice(0, 4000).includes('__metadata:')
}

/** Lockfiles say which generation wrote them; a newer program would refuse or rewrite them. */
function impliedVersion(tree: SourceTree, name: PackageManagerName, berry: boolean): string | undefined {
  if (name === 'pnpm') {
    const format = /^lockfileVersion:[ ]*['"]?(\d+)\.(\d+)/m.exec(
      (tree.read('pnpm-lock.yaml') ?? '').slice(0, 2000),
    )
    if (format === null) return tree.has('pnpm-lock.yaml') ? '9' : '10'
    return { '5': format[2] === '4' ? '7' : '6', '6': '8' }[format[1]!] ?? '9'
  }
  if (berry) {
    const format = Number(
      /^[ ]*version:[ ]*(\d+)/m.exec((tree.read('yarn.lock') ?? '').slice(0, 4000))?.[1] ?? 8,
    )
    if (format >= 8) return '4'
    return format >= 6 ? '3' : '2'
  }
  return undefined
}

function setupLines(
  tree: SourceTree,
  name: PackageManagerName,
  version: string | undefined,
  berry: boolean,
): string[] {
  // All of them come from npm's registry, so that a closed network needs one mirror; corepack is no longer
  // part of Node.
  if (name === 'npm') return version === undefined ? [] : [`npm install --global npm@${version}`]
  if (name === 'pnpm') return [`npm install --global pnpm@${version ?? '9'}`]
  if (name === 'bun') return [`npm install --global bun@${version ?? '1'}`]
  // With `yarnPath` the repository brings its own release, which the classic program starts.
  if (!berry || releaseFolder(tree)) return ['npm install --global --force yarn@1.22.22']
  return [`npm install --global --force @yarnpkg/cli-dist@${version ?? '4'}`]
}

/** Whether the repository carries Yarn itself. */
export function releaseFolder(tree: SourceTree): boolean {
  return tree.files().some((path) => path.startsWith('.yarn/releases/yarn-'))
}

function installLine(name: PackageManagerName, berry: boolean, lockfile: string | undefined): string {
  const locked = lockfile !== undefined
  if (name === 'npm') return locked ? 'npm ci' : 'npm install'
  if (name === 'pnpm') return locked ? 'pnpm install --frozen-lockfile' : 'pnpm install --no-frozen-lockfile'
  if (name === 'bun') return locked ? 'bun install --frozen-lockfile' : 'bun install'
  if (berry) return locked ? 'yarn install --immutable' : 'yarn install --no-immutable'
  return locked ? 'yarn install --frozen-lockfile' : 'yarn install'
}

/** Files besides package.json that decide what gets installed. */
export function installFiles(tree: SourceTree, folder = ''): string[] {
  const names = [
    'package-lock.json',
    'npm-shrinkwrap.json',
    'pnpm-lock.yaml',
    'pnpm-workspace.yaml',
    '.pnpmfile.cjs',
    'yarn.lock',
    '.yarnrc',
    '.yarnrc.yml',
    'bun.lock',
    'bun.lockb',
    'bunfig.toml',
    '.npmrc',
    'lerna.json',
  ]
  const carried = tree
    .files()
    .filter((path) => /^(?:\.yarn\/(?:releases|plugins|patches)|patches)\//.test(path))
  return [...names.map((name) => joinPath(folder, name)).filter((path) => tree.has(path)), ...carried]
}

/** A package's program through the package manager. */
export function execLine(manager: PackageManager, command: string): string {
  return `${{ npm: 'npx', pnpm: 'pnpm exec', yarn: 'yarn', bun: 'bunx' }[manager.name]} ${command}`
}

/** A script of the package in the current folder. */
export function scriptLine(manager: PackageManager, name: string): string {
  return `${{ npm: 'npm run', pnpm: 'pnpm run', yarn: 'yarn run', bun: 'bun run' }[manager.name]} ${name}`
}

/**
 * Whether packages live in Yarn's archive instead of `node_modules`, so that Node needs Yarn to find them.
 */
export function isPlugAndPlay(tree: SourceTree, manager: PackageManager): boolean {
  return manager.berry && !/^nodeLinker:[ ]*['"]?(?:node-modules|pnpm)/m.test(tree.read('.yarnrc.yml') ?? '')
}

/** Version of Bun that a file asks for, for apps that run on it. */
export function bunVersion(tree: SourceTree, manager: PackageManager): string {
  const requested =
    manager.name === 'bun' ? manager.version : textAt(at(readToml(tree, 'mise.toml'), 'tools'), 'bun')
  return /^\d+(?:\.\d+){0,2}$/.test(requested ?? '') ? requested! : '1'
}
