import type { SourceTree } from '../plan.ts'
import { at, readJson, textAt } from '../text-formats.ts'
import { filesIn, firstOf, skim } from '../tree-queries.ts'
import { compiledStack } from './compiled.ts'
import { nameIn } from './stack.ts'

const PLUMBER_FILES = ['plumber.R', 'entrypoint.R', 'api.R']
const SCRIPTS = ['run.R', 'main.R', 'server.R', 'app.R', 'start.R', 'index.R']
const LIBRARY = '/opt/r-library'

/**
 * R: Shiny apps, Plumber APIs and scripts. Packages are those of renv.lock or DESCRIPTION, else those that
 * the sources load.
 */
export const r = compiledStack({
  name: 'r',
  help: 'An app.R, a server.R and ui.R, a plumber.R, an renv.lock or a DESCRIPTION with R sources.',
  looked_for: ['app.R', 'server.R', 'plumber.R', 'renv.lock'],
  detect: (tree) =>
    sources(tree).length > 0 &&
    !['package.json', 'requirements.txt', 'pyproject.toml', 'Gemfile'].some((path) => tree.has(path)),
  image: 'r',
  versions(tree) {
    const locked = textAt(at(readJson(tree, 'renv.lock'), 'R'), 'Version')
    return [locked === undefined ? undefined : { wanted: locked, source: 'renv.lock' }]
  },
  facts(tree) {
    const text = sources(tree)
      .slice(0, 40)
      .map((path) => skim(tree, path))
      .join('\n')
    const program = programOf(tree, text)
    const { file, install } = installOf(tree, packagesOf(text, program.framework))
    return {
      framework: program.framework,
      package_manager: file === 'renv.lock' ? 'renv' : install && 'cran',
      install: install && `Rscript -e '${install}'`,
      // Heroku's buildpack for R runs this script to install packages.
      build: tree.has('init.R') ? 'Rscript init.R' : null,
      start: program.start,
      port: 8000,
      source: program.source,
      manifests: file === undefined ? [] : [file],
      build_packages: [
        'git',
        'libcurl4-openssl-dev',
        'libssl-dev',
        'libxml2-dev',
        'libsodium-dev',
        'zlib1g-dev',
        'libpq-dev',
        'libicu-dev',
        'pkg-config',
      ],
      runtime_packages: ['libcurl4-openssl-dev', 'libxml2-dev', 'libsodium-dev', 'libpq-dev'],
      build_env: {
        R_LIBS: LIBRARY,
        RENV_CONFIG_CACHE_ENABLED: 'FALSE',
        RENV_CONFIG_AUTOLOADER_ENABLED: 'FALSE',
      },
      runtime_env: { R_LIBS: LIBRARY, RENV_CONFIG_AUTOLOADER_ENABLED: 'FALSE' },
      build_setup: [`mkdir -p ${LIBRARY}`],
      keep: [
        { from: LIBRARY, to: LIBRARY },
        { from: '/app', to: '/app' },
      ],
    }
  },
})

function sources(tree: SourceTree): string[] {
  return [...filesIn(tree), ...filesIn(tree, 'R')].filter((path) => /^[\w./-]+\.[rR]$/.test(path))
}

function programOf(
  tree: SourceTree,
  text: string,
): { framework: string | null; start: string | null; source: string } {
  const run = firstOf(tree, ['run.R'])
  const app = skim(tree, 'app.R')
  if ((tree.has('server.R') && tree.has('ui.R')) || /shinyApp\s{0,5}\(/.test(app)) {
    const source = tree.has('server.R') ? 'server.R' : 'app.R'
    return {
      framework: 'shiny',
      source,
      start: `Rscript -e 'shiny::runApp("/app", host = "0.0.0.0", port = as.integer(Sys.getenv("PORT")))'`,
    }
  }
  const api = PLUMBER_FILES.find((path) => /^#\*\s{0,9}@/m.test(skim(tree, path)))
  const starter = run ?? (/\$run\(|pr_run\(/.test(app) ? 'app.R' : undefined)
  if (api !== undefined && starter === undefined)
    return {
      framework: 'plumber',
      source: api,
      start: `Rscript -e 'plumber::pr_run(plumber::pr("${api}"), host = "0.0.0.0", port = as.integer(Sys.getenv("PORT")))'`,
    }
  const file = starter ?? firstOf(tree, SCRIPTS) ?? sources(tree)[0]
  return {
    framework: nameIn(text, {
      plumber: /\bplumber\b/,
      shiny: /\bshiny\b/,
      golem: /\bgolem\b/,
      ambiorix: /\bambiorix\b/,
    }),
    source: file ?? 'R sources',
    start: file === undefined ? null : `Rscript ${file}`,
  }
}

/** The file that lists what to install, and R's words for it; null where there is nothing to install. */
function installOf(
  tree: SourceTree,
  names: readonly string[],
): { file: string | undefined; install: string | null } {
  const file = firstOf(tree, ['renv.lock', 'DESCRIPTION'])
  if (file === 'renv.lock')
    return {
      file,
      install: `install.packages("renv"); renv::restore(library = "${LIBRARY}", prompt = FALSE)`,
    }
  if (file !== undefined)
    return { file, install: 'install.packages("remotes"); remotes::install_deps(dependencies = TRUE)' }
  const quoted = names.map((name) => `"${name}"`).join(', ')
  return { file, install: names.length > 0 ? `install.packages(c(${quoted}))` : null }
}

/** Packages that the sources load by name, and the framework's own. */
function packagesOf(text: string, framework: string | null): string[] {
  const loaded = [
    ...text.matchAll(/(?:library|require|requireNamespace)\(\s{0,9}['"]?([A-Za-z][\w.]{1,60})/g),
    ...text.matchAll(/\b([A-Za-z][\w.]{1,60})::/g),
  ].map((match) => match[1]!)
  return [...new Set([...(framework === null ? [] : [framework]), ...loaded])]
    .filter((name) => !BUILT_IN.has(name))
    .sort()
}

const BUILT_IN = new Set([
  'base',
  'utils',
  'stats',
  'graphics',
  'grDevices',
  'methods',
  'datasets',
  'tools',
  'parallel',
  'compiler',
  'grid',
  'splines',
  'stats4',
  'tcltk',
])
