import { baseImage, packageLine } from './base-images.ts'
import { checkedLine, type CheckedLine } from './checks.ts'
import { cleanSite, staticServerSteps, type StaticSite } from './static-server.ts'
import { SECRETS_ARGUMENT } from './plan.ts'
import { isCopyable, type Instruction, type Stage } from './render-dockerfile.ts'

/**
 * The user of every app: a number of its own, never root, the same in all images so that volumes keep their
 * owner.
 */
export const APP_OWNER = '10001:10001'
const HOME = '/home/portreeve'
const WORK = '/app'

/** How one app is built and run, as data. One function turns it into stages. */
export interface BuildLayout {
  build_image: string
  /** Image of the finished app; ignored for a static site, which nginx serves. */
  runtime_image: string
  /** Debian packages for building and for running. */
  build_packages?: readonly string[]
  runtime_packages?: readonly string[]
  /** The image that packages are installed into, when `build_image` is a stage made of it. */
  packages_for?: string
  /** Lines that build and finished image share; with them, `build_image` becomes the base of both. */
  base_setup?: readonly string[]
  /** Lines of ours that prepare the build image; they run before anything of the repository is copied. */
  build_setup?: readonly string[]
  /** Lines of ours that prepare the finished image, as root, before the app is copied. */
  runtime_setup?: readonly string[]
  /** Programs taken from another image before anything else runs. */
  build_copies?: readonly { image: string; from: string; to: string }[]
  /** The same for the finished image. */
  runtime_copies?: readonly { image: string; from: string; to: string }[]
  build_env?: Readonly<Record<string, string>>
  /** Set once dependencies are installed: `NODE_ENV=production` earlier would leave out build tools. */
  late_build_env?: Readonly<Record<string, string>>
  runtime_env?: Readonly<Record<string, string>>
  /**
   * Files that decide what is installed; copied first, so that a change of source keeps the layer of
   * dependencies. Empty: everything is copied first.
   */
  manifests: readonly string[]
  /** Lines around the user's commands that are ours. */
  before_install?: readonly string[]
  install: string | null
  after_install?: readonly string[]
  before_build?: readonly string[]
  build: string | null
  /** Lines of ours that take what the build left; each says what is missing when it fails. */
  after_build?: readonly (string | CheckedLine)[]
  /**
   * Folders that keep what was downloaded or compiled from build to build: for every command of the repository,
   * and, below the work folder, for those alone that build.
   */
  caches?: readonly string[]
  build_caches?: readonly string[]
  /** Whether what the build leaves is taken from one of `build_caches`. */
  built_in_cache?: boolean
  /** A Node toolchain beside the app's own, for assets. */
  node_assets?: NodeAssets
  /** What the finished image takes from the build; the default is the work folder. */
  keep?: readonly { from: string; to: string }[]
  start: string | null
  /** Folder below the work folder in which the app starts. */
  start_directory?: string
  static_site?: StaticSite
  stop_signal?: string
  port: number
  /** Names of build arguments that the user sets. */
  build_args?: readonly string[]
  /** Whether the commands of the repository run with secret build variables. */
  build_secrets?: boolean
}

/** Front-end assets of an app that is not written for Node. */
export interface NodeAssets {
  image: string
  setup: readonly string[]
  manifests: readonly string[]
  /** Runs once its manifests, or the whole source when it has none, are there. */
  install: string
  build: string | null
}

/** Stages of a layout: `build`, and `app` which takes the result. */
export function layoutStages(layout: BuildLayout): Stage[] {
  if (layout.base_setup !== undefined && layout.base_setup.length > 0) {
    const base: Stage = {
      name: 'base',
      image: layout.build_image,
      instructions: layout.base_setup.map((line) => ({ kind: 'run', line })),
    }
    return [
      base,
      ...layoutStages({
        ...layout,
        base_setup: [],
        build_image: 'base',
        runtime_image: 'base',
        packages_for: layout.build_image,
      }),
    ]
  }
  const build: Stage = {
    name: 'build',
    image: layout.build_image,
    instructions: buildSteps(layout),
  }
  if (layout.static_site !== undefined) {
    const site: Stage = {
      ...build,
      instructions: [...build.instructions, cleanSite(layout.static_site)],
    }
    return [
      site,
      {
        name: 'app',
        image: baseImage('static'),
        instructions: staticServerSteps(layout.static_site, layout.port, 'build', APP_OWNER),
      },
    ]
  }
  return [build, { name: 'app', image: layout.runtime_image, instructions: runtimeSteps(layout) }]
}

function buildSteps(layout: BuildLayout): Instruction[] {
  const steps: Instruction[] = []
  const run = (lines: readonly string[] = []) =>
    steps.push(...lines.map((line): Instruction => ({ kind: 'run', line })))
  // Commands of the repository, which may need what the user set for builds.
  const secrets = layout.build_secrets ? { secrets: true } : {}
  const { caches, build_caches } = cachesOf(layout)
  const runOwn = (lines: readonly string[] = [], more: readonly string[] = []) =>
    steps.push(
      ...lines.map((line): Instruction => ({ kind: 'run', line, ...secrets, caches: [...caches, ...more] })),
    )
  const env = (values: Readonly<Record<string, string>> = {}) =>
    Object.keys(values).length > 0 && steps.push({ kind: 'env', values })
  run(aptInstall(layout.packages_for ?? layout.build_image, layout.build_packages))
  if (layout.node_assets !== undefined) steps.push(...nodeToolchain(layout.node_assets))
  steps.push(...copiesOf(layout.build_copies))
  env(layout.build_env)
  run(layout.build_setup)
  steps.push({ kind: 'workdir', path: WORK })
  steps.push(...argumentNames(layout).map((name): Instruction => ({ kind: 'arg', name })))
  const all: Instruction = { kind: 'copy', sources: ['.'], target: './' }
  const { node_assets } = layout
  // Without an install step of its own, or with a manifest that COPY cannot name, there is no layer to save.
  const early = (paths: readonly string[]) => paths.length > 0 && paths.every(isCopyable)
  const early_install = layout.install !== null && early(layout.manifests)
  if (node_assets !== undefined && early(node_assets.manifests)) {
    steps.push(...copyByFolder(node_assets.manifests))
    runOwn([node_assets.install])
  }
  steps.push(...(early_install ? copyByFolder(layout.manifests) : [all]))
  runOwn(layout.before_install)
  if (layout.install !== null) runOwn([layout.install], layout.built_in_cache === true ? build_caches : [])
  runOwn(layout.after_install)
  if (early_install) steps.push(all)
  if (node_assets !== undefined && !early(node_assets.manifests)) runOwn([node_assets.install])
  env(layout.late_build_env)
  runOwn(layout.before_build)
  if (node_assets?.build != null) runOwn([node_assets.build], build_caches)
  if (layout.build !== null) runOwn([layout.build], build_caches)
  const after = layout.built_in_cache === true ? build_caches : []
  steps.push(
    ...(layout.after_build ?? []).map((check): Instruction => {
      const line = checkedLine(check)
      return { kind: 'run', line, ...secrets, caches: after }
    }),
  )
  return steps
}

/** Where most programs keep what can be made again. */
const HOME_CACHE = '/root/.cache'
const NPM_CACHE = '/root/.npm'

/** The caches of a layout, without those that the finished image is made from. */
function cachesOf(layout: BuildLayout): { caches: string[]; build_caches: string[] } {
  const taken = (layout.keep ?? []).map(({ from }) => from).filter((from) => from !== WORK)
  const isFree = (path: string) =>
    !taken.some((from) => path === from || path.startsWith(`${from}/`) || from.startsWith(`${path}/`))
  const node = layout.node_assets === undefined ? [] : [NPM_CACHE]
  const modules = layout.node_assets === undefined ? [] : [`${WORK}/node_modules/.cache`]
  const unique = (paths: readonly string[]) => [...new Set(paths)].filter(isFree)
  return {
    caches: unique([HOME_CACHE, ...node, ...(layout.caches ?? [])]),
    build_caches: unique([...modules, ...(layout.build_caches ?? [])]),
  }
}

/**
 * Build arguments are in the environment of every command behind them: those that would keep a toolchain from
 * working, and `NODE_ENV` before build tools are installed, are left to the image.
 */
function argumentNames({ build_args = [], build_secrets, build_env, late_build_env }: BuildLayout): string[] {
  const own = new Set(['PATH', 'HOME', ...Object.keys({ ...build_env, ...late_build_env })])
  // A mounted secret is no part of what the builder compares: this makes it run the commands anew.
  return [...build_args.filter((name) => !own.has(name)), ...(build_secrets ? [SECRETS_ARGUMENT] : [])]
}

const copiesOf = (copies: BuildLayout['build_copies'] = []): Instruction[] =>
  copies.map(({ image, from, to }) => ({ kind: 'copy', from: image, sources: [from], target: to }))

function nodeToolchain(assets: NodeAssets): Instruction[] {
  return [
    {
      kind: 'copy',
      from: assets.image,
      sources: ['/usr/local/bin/node'],
      target: '/usr/local/bin/',
    },
    {
      kind: 'copy',
      from: assets.image,
      sources: ['/usr/local/lib/node_modules'],
      target: '/usr/local/lib/node_modules',
    },
    {
      kind: 'run',
      line: 'ln -sf ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && ln -sf ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx',
    },
    ...assets.setup.map((line): Instruction => ({ kind: 'run', line })),
  ]
}

/** COPY flattens folders, so manifests are copied folder by folder. */
function copyByFolder(paths: readonly string[]): Instruction[] {
  const folders = new Map<string, string[]>()
  for (const path of new Set(paths)) {
    const folder = path.includes('/') ? path.slice(0, path.lastIndexOf('/') + 1) : ''
    folders.set(folder, [...(folders.get(folder) ?? []), path])
  }
  return [...folders].map(([folder, sources]) => ({ kind: 'copy', sources, target: `./${folder}` }))
}

const NODE_IMAGE = /^node:/

function runtimeSteps(layout: BuildLayout): Instruction[] {
  const steps: Instruction[] = aptInstall(
    layout.packages_for ?? layout.runtime_image,
    layout.runtime_packages,
  ).map((line): Instruction => ({ kind: 'run', line }))
  steps.push({
    kind: 'run',
    line: `useradd --create-home --home-dir ${HOME} --uid 10001 --user-group --shell /bin/sh portreeve`,
  })
  steps.push(...copiesOf(layout.runtime_copies))
  steps.push(...(layout.runtime_setup ?? []).map((line): Instruction => ({ kind: 'run', line })))
  steps.push({
    kind: 'env',
    values: { HOME, PORT: String(layout.port), HOST: '0.0.0.0', ...layout.runtime_env },
  })
  steps.push({ kind: 'workdir', path: WORK })
  for (const { from, to } of layout.keep ?? [{ from: WORK, to: WORK }]) {
    steps.push({ kind: 'copy', from: 'build', owner: APP_OWNER, sources: [from], target: to })
  }
  const folder = layout.start_directory ?? ''
  if (folder !== '' && /^[A-Za-z0-9._/@+-]+$/.test(folder))
    steps.push({ kind: 'workdir', path: `${WORK}/${folder}` })
  steps.push({ kind: 'user', name: APP_OWNER }, { kind: 'expose', port: layout.port })
  if (layout.stop_signal !== undefined) steps.push({ kind: 'stop_signal', name: layout.stop_signal })
  // Node's image hands a program that does not exist to Node, which then complains about a missing module.
  if (NODE_IMAGE.test(layout.runtime_image)) steps.push({ kind: 'no_entrypoint' })
  if (layout.start !== null) steps.push({ kind: 'start', line: layout.start })
  return steps
}

function aptInstall(image: string, packages: readonly string[] = []): string[] {
  return packages.length === 0 ? [] : [packageLine(image, packages)]
}
