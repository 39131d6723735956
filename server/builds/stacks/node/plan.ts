import { portOfCommand } from '../../commands.ts'
import type { HealthCheckPlan } from '../../plan.ts'
import { at, textAt } from '../../text-formats.ts'
import { hasFolder, joinPath } from '../../tree-queries.ts'
import { chooseVersion, toolVersion, versionFile, type ChosenVersion } from '../../versions.ts'
import { HTTP_ROOT, TCP, because, type StackContext, type StackProposal } from '../stack.ts'
import { buildLine } from './build-line.ts'
import { chooseApp, type ChosenApp } from './choose-app.ts'
import { exportedApp } from './exported-app.ts'
import type { FrameworkPlan } from './frameworks/framework.ts'
import { nodeLayout } from './layout.ts'
import { uses, type Manifest } from './manifest.ts'
import { nxPlan } from './nx.ts'
import { bunVersion, isPlugAndPlay } from './package-manager.ts'
import { plainPlan } from './plain-plan.ts'
import { findStart, portOfSource, scriptStart, type FoundStart } from './start-command.ts'

const DEFAULT_PORT = 3000
const STATIC_PORT = 8080

/** Plans any repository with a package.json; Bun apps are the same with another runtime. */
export function planNode(context: StackContext, runtime: 'node' | 'bun'): StackProposal {
  const chosen = chooseApp(context.tree)
  const planned = nxPlan(chosen.app) ?? chosen.framework?.plan(chosen.app) ?? plainPlan(chosen)
  const facts = runtime === 'node' ? exportedApp(chosen, planned) : planned
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
  const port_source = port === (facts.port ?? DEFAULT_PORT) ? 'default, set as PORT' : 'source code'
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
    health_check: probeOf(facts),
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
      ...because('port', String(port), is_static ? 'nginx' : port_source),
    ],
    layout: (commands) => nodeLayout(context, chosen, facts, version.version, runtime, commands),
  }
}

function probeOf({ kind, ready_path }: FrameworkPlan): HealthCheckPlan {
  if (kind === 'static' || ready_path === '/') return HTTP_ROOT
  return ready_path === undefined ? TCP : { type: 'http', path: ready_path }
}

/** The port that the start line, or the script that it runs, insists on. */
function portOfStart({ app }: ChosenApp, line: string): number | undefined {
  const script = /^(?:npm|pnpm|yarn|bun) run ([\w:.-]{1,60})$/.exec(line)?.[1]
  return (
    portOfCommand(line) ??
    (script === undefined ? undefined : portOfCommand(app.manifest.scripts.get(script) ?? ''))
  )
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
  if (runtime === 'bun')
    return { ...found, line: found.line.replace(/^node (?=\S+\.[cm]?[jt]sx?$)/, 'bun run ') }
  return plug_and_play && /^node\s/.test(found.line) ? { ...found, line: `yarn ${found.line}` } : found
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
