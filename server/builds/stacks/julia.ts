import type { SourceTree } from '../plan.ts'
import { keysAt, readToml, textAt } from '../text-formats.ts'
import { filesIn, firstOf, hasFolder, skim } from '../tree-queries.ts'
import { toolVersion } from '../versions.ts'
import { compiledStack } from './compiled.ts'

const ENTRIES = [
  'main.jl',
  'server.jl',
  'app.jl',
  'run.jl',
  'start.jl',
  'web.jl',
  'src/main.jl',
  'src/server.jl',
  'bin/server.jl',
]
const DEPOT = '/opt/julia'
const FRAMEWORKS = ['Genie', 'GenieFramework', 'Oxygen', 'Dash', 'Pluto', 'Mux', 'HTTP']
const INSTALL = "julia --project=/app -e 'using Pkg; Pkg.instantiate(); Pkg.precompile()'"
const START_GENIE =
  'julia --project=/app -e \'using Genie; Genie.loadapp(); up(parse(Int, ENV["PORT"]), "0.0.0.0"; async = false)\''

/** Julia: its packages are installed and compiled ahead in a depot of the image. */
export const julia = compiledStack({
  name: 'julia',
  help: 'A Project.toml, or a main.jl, server.jl or app.jl.',
  looked_for: ['Project.toml', 'main.jl', 'app.jl'],
  detect: (tree) =>
    tree.has('JuliaProject.toml') ||
    (tree.has('Project.toml') && tree.files().some((path) => path.endsWith('.jl'))) ||
    (entry(tree) !== undefined && !tree.has('package.json')),
  image: 'julia',
  versions(tree) {
    const compatible = textAt(readToml(tree, 'Project.toml'), 'compat', 'julia')
    const resolved = textAt(readToml(tree, 'Manifest.toml'), 'julia_version')
    // A bare number of Julia's allows every later release of the same major one.
    const range =
      compatible === undefined
        ? undefined
        : compatible
            .split(',')
            .map((part) => part.trim().replace(/^(?=\d)/, '^'))
            .join(' || ')
    return [
      toolVersion(tree, 'julia'),
      resolved === undefined ? undefined : { wanted: resolved, source: 'Manifest.toml' },
      range === undefined ? undefined : { wanted: range, source: 'Project.toml' },
    ]
  },
  facts(tree) {
    const project = ['Project.toml', 'JuliaProject.toml'].find((path) => tree.has(path))
    const dependencies = keysAt(project === undefined ? undefined : readToml(tree, project), 'deps')
    const file = entry(tree)
    const text = skim(tree, file)
    const uses = (name: string) =>
      dependencies.includes(name) || new RegExp(`^[ \\t]*using[^\\n]*\\b${name}\\b`, 'm').test(text)
    const genie = uses('Genie') || uses('GenieFramework')
    const generated = genie && hasFolder(tree, 'bin') && tree.has('routes.jl')
    const script = file === undefined ? null : `julia --project=/app ${file}`
    return {
      framework: FRAMEWORKS.find(uses)?.replace('GenieFramework', 'Genie').toLowerCase() ?? null,
      package_manager: 'pkg',
      install: project === undefined ? addPackages(packagesOf(text)) : INSTALL,
      build: null,
      start: generated || (genie && file === undefined) ? START_GENIE : script,
      port: 8000,
      source: project ?? file ?? 'Julia files',
      manifests:
        project === undefined || hasFolder(tree, 'src')
          ? []
          : [project, 'Manifest.toml'].filter((path) => tree.has(path)),
      build_packages: ['git', 'ca-certificates'],
      build_env: { JULIA_DEPOT_PATH: DEPOT, JULIA_CPU_TARGET: 'generic' },
      // What is compiled at run time is written where the app may write; the image's depot is read behind it.
      runtime_env: {
        JULIA_DEPOT_PATH: `/tmp/julia:${DEPOT}`,
        JULIA_CPU_TARGET: 'generic',
        GENIE_ENV: 'prod',
        GENIE_HOST: '0.0.0.0',
        EARLYBIND: 'true',
      },
      after_build: [`mkdir -p ${DEPOT}`],
      keep: [
        { from: DEPOT, to: DEPOT },
        { from: '/app', to: '/app' },
      ],
    }
  },
})

function entry(tree: SourceTree): string | undefined {
  const scripts = filesIn(tree).filter((path) => /^[\w.-]+\.jl$/.test(path) && path !== 'routes.jl')
  return firstOf(tree, ENTRIES) ?? (scripts.length === 1 ? scripts[0] : undefined)
}

function addPackages(names: readonly string[]): string | null {
  if (names.length === 0) return null
  return `julia --project=/app -e 'using Pkg; Pkg.add([${names.map((name) => `"${name}"`).join(', ')}])'`
}

/**
 * Packages that a lone script uses; those of the standard library need no installation, and asking for them
 * does no harm.
 */
function packagesOf(text: string): string[] {
  const names = [...text.matchAll(/^[ \t]{0,8}(?:using|import)[ \t]+([\w, \t]{1,300})/gm)].flatMap((match) =>
    match[1]!.split(',').map((name) => name.trim()),
  )
  return [...new Set(names.filter((name) => /^[A-Z]\w{1,60}$/.test(name)))]
}
