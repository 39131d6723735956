import { baseImage } from '../../base-images.ts'
import { shellWord } from '#server/kernel/shell-word'
import type { BuildLayout } from '../../layout.ts'
import { joinPath } from '../../tree-queries.ts'
import type { Commands, StackContext } from '../stack.ts'
import { cacheFolders, nodeCaches } from './caches.ts'
import type { ChosenApp } from './choose-app.ts'
import type { FrameworkPlan } from './frameworks/framework.ts'
import { lifecycleFiles, programFiles } from './lifecycle.ts'
import { uses } from './manifest.ts'
import { systemNeeds } from './native-packages.ts'
import { bunVersion, installFiles, isPlugAndPlay } from './package-manager.ts'
import { callsOf } from './runtime-calls.ts'

/** How the Dockerfile of a repository with a package.json is laid out. */
export function nodeLayout(
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
