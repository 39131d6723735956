import { filesWithSuffix, skim } from '../../tree-queries.ts'
import type { Commands } from '../stack.ts'
import type { ChosenApp } from './choose-app.ts'
import type { PackageManagerName } from './package-manager.ts'

const CALL = /(?:^|[\s;&|("'`/])(npm|npx|pnpm|pnpx|yarn|bun|bunx)(?=[\s"'`]|$)/g
const OWNER: ReadonlyMap<string, PackageManagerName> = new Map([
  ['npm', 'npm'],
  ['npx', 'npm'],
  ['pnpm', 'pnpm'],
  ['pnpx', 'pnpm'],
  ['yarn', 'yarn'],
  ['bun', 'bun'],
  ['bunx', 'bun'],
])
/** A program of the app that starts another one. */
const SPAWNS =
  /\b(?:spawn|exec|execFile|execa|execaCommand|fork|\$)(?:Sync)?(?:\(\s{0,9}|\s{0,2})[`'"](pnpm|pnpx|yarn|bunx?|npm|npx)\b/g
/** A file of pm2 says in fields what it starts. */
const PROCESS_FILES = ['ecosystem.config', 'pm2.config', 'process', 'pm2', 'ecosystem']
const STARTED =
  /\b(?:script|interpreter|exec_interpreter)['"]?\s{0,9}:\s{0,9}['"`](pnpm|pnpx|yarn|bunx?|npm|npx)\b/g
const SKIMMED = 60
/** Scripts that call scripts; deeper than anybody writes them. */
const DEPTH = 5

/** Package managers that are called in the finished image: by commands, the scripts they run, or the app itself. */
export function callsOf({ app, root }: ChosenApp, commands: Commands): Set<PackageManagerName> {
  const called = new Set<PackageManagerName>()
  const seen = new Set<string>()
  let lines = [commands.start ?? '', ...commands.others]
  for (let depth = 0; depth < DEPTH && lines.length > 0; depth += 1) {
    const text = lines.join('\n')
    for (const [, name] of text.matchAll(CALL)) called.add(OWNER.get(name!)!)
    const names = [...app.manifest.scripts.keys(), ...root.scripts.keys()].filter(
      (name) => !seen.has(name) && runsScript(text, name),
    )
    names.forEach((name) => seen.add(name))
    lines = names.flatMap((name) => app.manifest.scripts.get(name) ?? root.scripts.get(name) ?? [])
  }
  const sources = filesWithSuffix(app.tree, ['.js', '.mjs', '.cjs', '.ts', '.mts'], 3).slice(0, SKIMMED)
  for (const path of sources.filter(
    (one) => !/(?:^|\/)(?:scripts?|tests?|e2e|[\w.-]+\.config\.\w+$)/.test(one),
  ))
    for (const [, name] of skim(app.tree, path).matchAll(SPAWNS)) called.add(OWNER.get(name!)!)
  const process_files = PROCESS_FILES.flatMap((base) =>
    ['.js', '.cjs', '.mjs', '.json'].map((end) => base + end),
  )
  for (const path of process_files)
    for (const [, name] of skim(app.tree, path).matchAll(STARTED)) called.add(OWNER.get(name!)!)
  return called
}

/** Whether a line runs a script by its name, with or without `run`. */
function runsScript(text: string, name: string): boolean {
  const quoted = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`\\b(?:npm|pnpm|yarn|bun)\\s+(?:--?\\S+\\s+){0,4}(?:run\\s+)?${quoted}(?![\\w:.-])`).test(
    text,
  )
}
