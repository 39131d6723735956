import { shellWord } from '#server/kernel/shell-word'
import { joinPath } from '../../tree-queries.ts'
import type { ChosenApp } from './choose-app.ts'
import type { FrameworkPlan } from './frameworks/framework.ts'
import { uses } from './manifest.ts'
import type { FoundStart } from './start-command.ts'
import { buildOrder } from './workspaces.ts'

/** The build: the package's script in its folder, through the monorepo's own runner where there is one. */
export function buildLine(chosen: ChosenApp, facts: FrameworkPlan): FoundStart | undefined {
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
