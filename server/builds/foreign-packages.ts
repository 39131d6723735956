import { baseImage } from './base-images.ts'
import type { BuildLayout } from './layout.ts'
import type { Explanation, SourceTree } from './plan.ts'
import { COPIED_TOOLS, debianPackages, READ_BY_STACK, type CopiedTool } from './known-packages.ts'
import { toolRequests } from './tool-requests.ts'
import { listAt, readJson, readToml } from './text-formats.ts'
import { chooseVersion } from './versions.ts'

/** A package of Debian as a file names it, optionally with a version, which the image decides. */
const APT_NAME = /^([a-z0-9][a-z0-9+.-]{1,80})(?:=[\w.+:~-]{1,60})?$/
const MAX_PACKAGES = 60

interface Wanted {
  source: string
  /** Names of apt, and where they are needed. */
  apt: readonly string[]
  at: 'build' | 'run' | 'both'
}

/** Packages of Debian that files of other platforms name. */
function aptPackages(tree: SourceTree): Wanted[] {
  const railpack = readJson(tree, 'railpack.json')
  const nixpacks = readToml(tree, 'nixpacks.toml') ?? readJson(tree, 'nixpacks.json')
  const nixpacks_source = tree.has('nixpacks.toml') ? 'nixpacks.toml' : 'nixpacks.json'
  const lines = (tree.read('Aptfile') ?? '')
    .slice(0, 16_384)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
  return [
    { source: 'railpack.json', apt: listAt(railpack, 'buildAptPackages'), at: 'build' },
    { source: 'railpack.json', apt: listAt(railpack, 'deploy', 'aptPackages'), at: 'run' },
    {
      source: nixpacks_source,
      apt: [
        ...listAt(nixpacks, 'phases', 'setup', 'aptPkgs'),
        ...listAt(nixpacks, 'phases', 'setup', 'nixLibs'),
      ].flatMap((name) => debianPackages(name) ?? name),
      at: 'both',
    },
    { source: 'Aptfile', apt: lines, at: 'both' },
  ].filter(({ apt }) => apt.length > 0) as Wanted[]
}

/** What files of other platforms want installed, on top of what the stack itself brings. */
export function withForeignPackages(
  tree: SourceTree,
  stack: string,
  layout: BuildLayout,
): { layout: BuildLayout; explanation: Explanation[] } {
  const build: string[] = []
  const run: string[] = []
  const copied = new Map<CopiedTool, string>()
  const explanation: Explanation[] = []
  const warn = (value: string, source: string) => explanation.push({ field: 'warning', value, source })
  for (const { source, apt, at } of aptPackages(tree)) {
    const names = apt.slice(0, MAX_PACKAGES).flatMap((name) => {
      // The railpack file may begin its list with `...`, which stands for what is installed anyway.
      if (name === '...') return []
      const plain = APT_NAME.exec(name)?.[1]
      if (plain === undefined)
        warn(`${name.slice(0, 80)} is not installed: this is no name of a package.`, source)
      return plain ?? []
    })
    if (at !== 'run') build.push(...names)
    if (at !== 'build') run.push(...names)
    if (names.length > 0) explanation.push({ field: 'packages', value: names.join(', '), source })
  }
  for (const { tool, wanted, source } of toolRequests(tree)) {
    if (READ_BY_STACK.get(tool)?.includes(stack)) continue
    const copy = COPIED_TOOLS.get(tool)
    const packages = debianPackages(tool)
    if (copy !== undefined) {
      if (copied.has(copy)) continue
      const { version } = chooseVersion(copy.image, [{ wanted, source }])
      copied.set(copy, baseImage(copy.image, version))
      explanation.push({ field: 'packages', value: `${tool} ${version}`, source })
    } else if (packages !== undefined) {
      build.push(...packages)
      run.push(...packages)
      const version = /^(?:latest|\*|)$/.test(wanted)
        ? ''
        : `, in the version that Debian has instead of ${wanted}`
      if (packages.length > 0)
        explanation.push({ field: 'packages', value: `${packages.join(', ')}${version}`, source })
    } else
      warn(
        `${tool} is not installed: nothing here brings it. Use a Dockerfile, or install it in the build command.`,
        source,
      )
  }
  return { layout: extended(layout, build, run, copied), explanation }
}

function extended(
  layout: BuildLayout,
  build: readonly string[],
  run: readonly string[],
  copied: ReadonlyMap<CopiedTool, string>,
): BuildLayout {
  if (build.length === 0 && run.length === 0 && copied.size === 0) return layout
  const copies = [...copied].flatMap(([{ paths }, image]) =>
    paths.map((path) => ({ image, from: path, to: path.endsWith('/node') ? '/usr/local/bin/' : path })),
  )
  const links = [...copied.keys()].flatMap(({ link }) => link ?? [])
  const bins = [...copied.keys()].flatMap(({ bin }) => bin ?? [])
  const path = (values: Readonly<Record<string, string>> = {}) =>
    bins.length === 0 ? values : { ...values, PATH: `${bins.join(':')}:${values.PATH ?? '$PATH'}` }
  return {
    ...layout,
    build_packages: [...(layout.build_packages ?? []), ...build],
    runtime_packages: [...(layout.runtime_packages ?? []), ...run],
    build_copies: [...(layout.build_copies ?? []), ...copies],
    runtime_copies: [...(layout.runtime_copies ?? []), ...copies],
    build_setup: [...links, ...(layout.build_setup ?? [])],
    runtime_setup: [...links, ...(layout.runtime_setup ?? [])],
    build_env: path(layout.build_env),
    runtime_env: path(layout.runtime_env),
  }
}
