import { baseImage } from '../../base-images.ts'
import { portOfCommand, shellWord } from '../../commands.ts'
import type { BuildLayout } from '../../layout.ts'
import { at, readJson, readToml, textAt } from '../../text-formats.ts'
import { firstOf, hasFolder, joinPath, skim } from '../../tree-queries.ts'
import { chooseVersion, toolVersion, versionFile, type ChosenVersion } from '../../versions.ts'
import { HTTP_ROOT, TCP, because, type Commands, type StackContext, type StackProposal } from '../stack.ts'
import { chooseApp, type ChosenApp } from './choose-app.ts'
import type { FrameworkPlan } from './frameworks/framework.ts'
import { lifecycleFiles, programFiles } from './lifecycle.ts'
import { configText, uses, type Manifest, type NodeApp } from './manifest.ts'
import { systemNeeds } from './native-packages.ts'
import { nxPlan } from './nx.ts'
import { bunVersion, installFiles, isPlugAndPlay } from './package-manager.ts'
import { cacheFolders, nodeCaches } from './caches.ts'
import { callsOf } from './runtime-calls.ts'
import { findStart, portOfSource, scriptStart, type FoundStart } from './start-command.ts'
import { buildOrder } from './workspaces.ts'

const DEFAULT_PORT = 3000
const STATIC_PORT = 8080

/** Plans any repository with a package.json; Bun apps are the same with another runtime. */
export function planNode(context: StackContext, runtime: 'node' | 'bun'): StackProposal {
  const chosen = chooseApp(context.tree)
  const facts: FrameworkPlan = nxPlan(chosen.app) ?? chosen.framework?.plan(chosen.app) ?? plainPlan(chosen)
  const version =
    runtime === 'bun'
      ? { version: bunVersion(context.tree, chosen.manager), source: chosen.manager.source }
      : nodeVersion(context, chosen, facts.node ?? chosen.manager.node)
  const is_static = facts.kind === 'static'
  const build = buildLine(chosen, facts)
  const start = is_static ? undefined : startLine(context, chosen, facts, runtime)
  const port = is_static
    ? STATIC_PORT
    : (portOfStart(chosen, start?.line ?? '') ??
      portOfSource(chosen.app.tree, start?.line ?? '') ??
      facts.port ??
      DEFAULT_PORT)
  const { app, manager } = chosen
  const stack = runtime
  return {
    stack,
    framework: chosen.framework?.name ?? null,
    version: version.version,
    package_manager: manager.name,
    install_command: manager.install,
    build_command: build?.line ?? null,
    start_command: start?.line ?? null,
    release_command: releaseLine(chosen, facts),
    port,
    health_check:
      is_static || facts.ready_path === '/'
        ? HTTP_ROOT
        : facts.ready_path === undefined
          ? TCP
          : { type: 'http', path: facts.ready_path },
    explanation: [
      ...because(
        'stack',
        stack,
        app.manifest.folder === ''
          ? 'package.json'
          : `${app.manifest.folder}/package.json, the package of the monorepo that can run`,
      ),
      ...because('framework', chosen.framework?.name, 'dependencies in package.json'),
      ...because('version', version.version, version.source),
      ...because('package_manager', manager.name, manager.source),
      ...because('install_command', manager.install, manager.warning ?? manager.lockfile ?? 'package.json'),
      ...because('build_command', build?.line, build?.source ?? ''),
      ...because('start_command', start?.line, start?.source ?? ''),
      ...(is_static
        ? because('static_folder', facts.output, 'the build leaves files, which nginx serves')
        : []),
      ...because(
        'port',
        String(port),
        is_static ? 'nginx' : port === (facts.port ?? DEFAULT_PORT) ? 'default, set as PORT' : 'source code',
      ),
    ],
    layout: (commands) => nodeLayout(context, chosen, facts, version.version, runtime, commands),
  }
}

/** The port that the start line, or the script that it runs, insists on. */
function portOfStart({ app }: ChosenApp, line: string): number | undefined {
  const script = /^(?:npm|pnpm|yarn|bun) run ([\w:.-]{1,60})$/.exec(line)?.[1]
  return (
    portOfCommand(line) ??
    (script === undefined ? undefined : portOfCommand(app.manifest.scripts.get(script) ?? ''))
  )
}

/** No framework: a server if anything starts, else a page with assets. */
function plainPlan(chosen: ChosenApp): FrameworkPlan {
  const { tree } = chosen.app
  const bundled = bundledPage(chosen.app)
  if (bundled !== undefined) return { kind: 'static', build: null, output: bundled, fallback: 'spa' }
  const published = publishedFolder(chosen)
  if (published !== undefined) return { kind: 'static', build: null, output: published, fallback: 'pages' }
  const page = firstOf(tree, ['public/index.html', 'dist/index.html', 'build/index.html', 'index.html'])
  const start = findStart(chosen.app)
  const served =
    /\b(?:serve|http-server|live-server|lite-server|sirv|webpack|rollup|gulp|parcel|esbuild)\b/.test(
      start?.line ?? '',
    ) ||
    (/scripts\.(?:start|dev|serve)/.test(start?.source ?? '') &&
      /^(?:npx )?(?:serve|http-server)\b/.test(chosen.app.manifest.scripts.get('start') ?? ''))
  if (page === undefined || (start !== undefined && !served)) return { kind: 'server', build: null }
  const bundles = chosen.app.manifest.scripts.has('build')
  const output = page.includes('/')
    ? page.slice(0, page.indexOf('/'))
    : bundles && !buildsOnlyAssets(chosen.app)
      ? 'dist'
      : '.'
  // Installed packages are no part of the site, unless its page loads from them.
  const after_build =
    output === '.' && !/node_modules\//.test(skim(tree, page)) ? ['rm -rf node_modules'] : undefined
  return { kind: 'static', build: null, output, fallback: 'spa', after_build }
}

/** A build of style sheets and scripts for a page that stays where it is. */
function buildsOnlyAssets({ manifest }: NodeApp): boolean {
  const build = manifest.scripts.get('build') ?? ''
  return (
    /\b(?:tailwindcss|postcss|sass|lessc|stylus|tsc|esbuild|rollup|terser|uglify\w*|babel|swc|grunt)\b/.test(
      build,
    ) && !/\b(?:cp|cpx|cpy|copyfiles|copy|html)\b/.test(build)
  )
}

/**
 * The folder that the settings for a host of static sites name, when a build fills it and nothing starts a
 * server.
 */
function publishedFolder({ app }: ChosenApp): string | undefined {
  if (!app.manifest.scripts.has('build') || app.manifest.scripts.has('start') || app.root.has('Procfile'))
    return undefined
  const found =
    textAt(readToml(app.root, 'netlify.toml'), 'build', 'publish') ??
    textAt(readJson(app.root, 'vercel.json'), 'outputDirectory') ??
    textAt(readJson(app.root, 'firebase.json'), 'hosting', 'public')
  const folder = found?.replace(/^\.?\/|\/$/g, '')
  return folder !== undefined && /^[\w][\w./-]{0,80}$/.test(folder) && !folder.includes('..')
    ? folder
    : undefined
}

/**
 * The folder that webpack fills for a page: its start script, if any, is the development server that comes
 * with webpack.
 */
function bundledPage(app: NodeApp): string | undefined {
  const [build, start] = ['build', 'start'].map((name) => app.manifest.scripts.get(name))
  if (
    build === undefined ||
    !uses(app, 'webpack-dev-server', '@webpack-cli/serve', 'html-webpack-plugin') ||
    !/\bwebpack\b/.test(build)
  )
    return undefined
  if (start !== undefined && !/\bwebpack(?:-dev-server|\s+(?:serve|server))\b/.test(start)) return undefined
  const written =
    /path\s{0,9}:\s{0,9}[\w.]{1,40}\(\s{0,9}__dirname\s{0,9},\s{0,9}['"]\.?\/?([\w-]{1,60})['"]/.exec(
      configText(app.tree, 'webpack.config') + configText(app.tree, 'webpack.prod'),
    )?.[1]
  return written ?? 'dist'
}

function nodeVersion(context: StackContext, chosen: ChosenApp, preferred: string | undefined): ChosenVersion {
  const { tree } = context
  const manifests: Manifest[] = [chosen.app.manifest, chosen.root]
  const engines = manifests.flatMap((manifest) => {
    const source = `package.json${manifest.folder === '' ? '' : ` of ${manifest.folder}`}`
    const volta = textAt(manifest.fields, 'volta', 'node')
    const engine =
      textAt(manifest.fields, 'engines', 'node') ??
      textAt(at(manifest.fields, 'devEngines', 'runtime'), 'version')
    return [
      ...(volta === undefined ? [] : [{ wanted: volta, source: `volta in ${source}` }]),
      ...(engine === undefined ? [] : [{ wanted: engine, source: `engines in ${source}` }]),
    ]
  })
  const files = versionFile(tree, joinPath(chosen.app.manifest.folder, '.nvmrc'), '.nvmrc', '.node-version')
  return chooseVersion(
    'node',
    [context.version_request, files, toolVersion(tree, 'nodejs', 'node'), ...engines],
    preferred,
  )
}

/** The build: the package's script in its folder, through the monorepo's own runner where there is one. */
function buildLine(chosen: ChosenApp, facts: FrameworkPlan): FoundStart | undefined {
  const { app, root, packages } = chosen
  if (facts.build_line !== undefined) return { line: facts.build_line, source: 'default of the framework' }
  if (packages.length > 0 && app.manifest.folder !== '') return monorepoBuild(chosen, facts)
  const name = [
    'heroku-postbuild',
    'gcp-build',
    'build:prod',
    'build:production',
    'build',
    ...(facts.kind === 'static' ? ['docs:build', 'build:docs'] : []),
  ].find((script) => root.scripts.has(script))
  if (
    (facts.own_build === true || (facts.own_start === true && facts.kind === 'static')) &&
    facts.build != null
  )
    return {
      line: app.exec(facts.build),
      source: facts.own_build === true ? 'project.json' : 'default of the framework',
    }
  if (name !== undefined) return { line: app.script(name), source: `scripts.${name} in package.json` }
  return facts.build == null ? undefined : { line: app.exec(facts.build), source: 'default of the framework' }
}

function monorepoBuild(chosen: ChosenApp, facts: FrameworkPlan): FoundStart | undefined {
  const { app, root, packages, manager } = chosen
  const { manifest } = app
  const name =
    manifest.name !== undefined && /^[@A-Za-z0-9._/-]+$/.test(manifest.name) ? manifest.name : undefined
  const has_build = manifest.scripts.has('build')
  if (name !== undefined && has_build && app.root.has('turbo.json') && uses({ manifest: root }, 'turbo')) {
    return { line: app.exec(`turbo run build --filter=${name}`), source: 'turbo.json' }
  }
  if (
    name !== undefined &&
    !has_build &&
    app.root.has('nx.json') &&
    app.root.has(joinPath(manifest.folder, 'project.json'))
  ) {
    return { line: app.exec(`nx build ${name}`), source: 'nx.json' }
  }
  const order = buildOrder(manifest, packages).filter((candidate) => candidate.scripts.has('build'))
  const lines = order.map((candidate) => `cd ${shellWord(candidate.folder)} && ${app.script('build')}`)
  if (!has_build && facts.build != null)
    lines.push(`cd ${shellWord(manifest.folder)} && ${app.exec(facts.build)}`)
  if (lines.length === 0) return undefined
  const line = lines.length === 1 ? lines[0]! : lines.map((part) => `(${part})`).join(' && ')
  return {
    line,
    source: `scripts.build of ${[...order.map((candidate) => candidate.folder)].join(', ') || 'the framework'} (${manager.name})`,
  }
}

function startLine(
  context: StackContext,
  chosen: ChosenApp,
  facts: FrameworkPlan,
  runtime: 'node' | 'bun',
): FoundStart | undefined {
  const { app, manager } = chosen
  const script = app.manifest.scripts.get('start')
  if (facts.start !== undefined && (facts.own_start === true || script === undefined))
    return { line: facts.start, source: `default of ${chosen.framework?.name ?? 'the framework'}` }
  const plug_and_play = isPlugAndPlay(context.tree, manager)
  const found =
    plug_and_play && script !== undefined
      ? { line: app.script('start'), source: 'scripts.start in package.json' }
      : findStart(app)
  if (found === undefined) return undefined
  const line =
    runtime === 'bun'
      ? found.line.replace(/^node (?=\S+\.[cm]?[jt]sx?$)/, 'bun run ')
      : plug_and_play && /^node\s/.test(found.line)
        ? `yarn ${found.line}`
        : found.line
  return { line, source: found.source }
}

/** Migrations that wait in the repository run before traffic reaches the new release. */
function releaseLine(chosen: ChosenApp, facts: FrameworkPlan): string | null {
  const { app } = chosen
  if (facts.release !== undefined) return facts.release
  if (uses(app, 'prisma', '@prisma/client') && hasFolder(app.tree, 'prisma/migrations'))
    return app.exec('prisma migrate deploy')
  const script = [
    'heroku-release',
    'release',
    'migrate:deploy',
    'db:migrate:deploy',
    'migration:run:prod',
  ].find(
    (name) =>
      app.manifest.scripts.has(name) &&
      !/semantic-release|np\b|release-it|changeset|standard-version|npm publish/.test(
        app.manifest.scripts.get(name)!,
      ),
  )
  return script === undefined ? null : scriptStart(app, script, app.manifest.scripts.get(script)!)
}

function nodeLayout(
  context: StackContext,
  chosen: ChosenApp,
  facts: FrameworkPlan,
  version: string,
  runtime: 'node' | 'bun',
  commands: Commands,
): BuildLayout {
  const { app, manager, root, packages } = chosen
  const { folder } = app.manifest
  const everyone = [root, ...packages]
  const needs = systemNeeds(everyone)
  const image = baseImage('node', runtime === 'bun' ? undefined : version)
  const needs_bun = runtime === 'bun' || callsOf(chosen, commands).has('bun')
  const bun =
    needs_bun && manager.name !== 'bun'
      ? [`npm install --global bun@${bunVersion(context.tree, manager)}`]
      : []
  // Packages stay in their archives, which must lie where the app is, and not in the home of whoever
  // installs.
  const archives: Record<string, string> = isPlugAndPlay(context.tree, manager)
    ? { YARN_ENABLE_GLOBAL_CACHE: 'false' }
    : {}
  const scripts = lifecycleFiles(context.tree, everyone)
  const manifests =
    scripts === undefined
      ? []
      : [
          ...everyone.map((manifest) => joinPath(manifest.folder, manifest.file)),
          ...packages.flatMap((manifest) => programFiles(context.tree, manifest)),
          ...installFiles(context.tree),
          ...scripts,
        ]
  const bins = [
    '/app/node_modules/.bin',
    ...(folder === '' || !/^[A-Za-z0-9._/@+-]+$/.test(folder) ? [] : [`/app/${folder}/node_modules/.bin`]),
  ]
    .reverse()
    .join(':')
  const at_root = (lines: readonly string[] = []) =>
    lines.map((line) => (folder === '' ? line : `cd ${shellWord(folder)} && ${line}`))
  const bundle = commands.own_start && facts.bundle !== undefined ? joinPath(folder, facts.bundle) : undefined
  const runtime_setup = [...(needsManager(chosen, commands, needs_bun) ? manager.setup : []), ...bun]
  const programs =
    commands.start === facts.start ? (facts.programs ?? []).map((name) => `npm install --global ${name}`) : []
  return {
    build_image: image,
    runtime_image: image,
    build_packages: [...needs.build, ...(facts.build_packages ?? [])],
    runtime_packages: needs.runtime,
    build_setup: [...manager.setup, ...bun, ...(facts.build_setup ?? [])],
    runtime_setup: [...runtime_setup, ...programs],
    build_env: {
      HUSKY: '0',
      NPM_CONFIG_UPDATE_NOTIFIER: 'false',
      NPM_CONFIG_FUND: 'false',
      NPM_CONFIG_AUDIT: 'false',
      ...cacheFolders(manager),
      ...archives,
      ...needs.env,
    },
    late_build_env: { NODE_ENV: 'production', ...facts.build_env },
    runtime_env: {
      NODE_ENV: 'production',
      PATH: `${bins}:$PATH`,
      ...archives,
      ...needs.env,
      ...facts.env,
    },
    manifests,
    ...nodeCaches(chosen, facts, archives),
    install: commands.install,
    before_build: at_root(prismaLines(chosen, commands)),
    build: commands.build,
    after_build:
      facts.kind === 'static' || bundle !== undefined
        ? (facts.after_build ?? []).map((check) =>
            typeof check === 'string' ? at_root([check])[0]! : { ...check, line: at_root([check.line])[0]! },
          )
        : [],
    keep: bundle === undefined ? undefined : [{ from: `/app/${bundle}`, to: bundleTarget(facts, folder) }],
    start: commands.start,
    start_directory: bundle === undefined || facts.bundle?.includes('standalone') !== true ? folder : '',
    static_site:
      facts.kind === 'static' && commands.own_start
        ? {
            from: `/app/${joinPath(folder, facts.output ?? 'dist').replace(/^(?:\.\.\/)+/, '')}`,
            fallback: facts.fallback ?? 'spa',
            spa_page: facts.spa_page,
            not_found: facts.fallback === 'pages' ? '/404.html' : undefined,
          }
        : undefined,
    port: commands.port,
  }
}

/** A standalone bundle is a root of its own; any other keeps its place below the package. */
function bundleTarget(facts: FrameworkPlan, folder: string): string {
  return facts.bundle!.includes('standalone') ? '/app' : `/app/${joinPath(folder, facts.bundle!)}`
}

/** Whether something that runs in the finished image calls the package manager. */
function needsManager(chosen: ChosenApp, commands: Commands, needs_bun: boolean): boolean {
  const { name } = chosen.manager
  return (
    (name === 'bun' && needs_bun) ||
    callsOf(chosen, commands).has(name) ||
    (name !== 'npm' && !commands.own_start)
  )
}

function prismaLines(chosen: ChosenApp, commands: Commands): string[] {
  const { app } = chosen
  const schema = app.tree.has('prisma/schema.prisma')
  const scripts = [...app.manifest.scripts.values()].join('\n')
  if (
    !schema ||
    !uses(app, 'prisma', '@prisma/client') ||
    /prisma generate/.test(`${commands.build} ${scripts}`)
  )
    return []
  return [app.exec('prisma generate')]
}
