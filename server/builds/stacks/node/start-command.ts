import type { SourceTree } from '../../plan.ts'
import { isSimpleCommand } from '../../commands.ts'
import { firstOf, skim } from '../../tree-queries.ts'
import { uses, type NodeApp } from './manifest.ts'

const ENTRIES = [
  'index',
  'server',
  'app',
  'main',
  'src/index',
  'src/server',
  'src/app',
  'src/main',
  'bin/www',
  'bin/server',
  'lib/index',
  'server/index',
  'api/index',
]
const EXTENSIONS = ['.js', '.mjs', '.cjs', '.ts', '.mts', '.tsx', '']

/** A start command and where it was found. */
export interface FoundStart {
  line: string
  source: string
}

/** What starts a plain server: a script, then `main`, then the usual entry files. */
export function findStart(app: NodeApp): FoundStart | undefined {
  for (const name of [
    'start:prod',
    'start:production',
    'start',
    'production',
    'serve',
    'server',
    'preview',
  ]) {
    const script = app.manifest.scripts.get(name)
    if (script === undefined) continue
    // `start:prod` is only better than `start` where `start` is for development.
    if (name === 'preview' && !/(?:^|\s)(?:node|tsx|bun)\s/.test(script)) continue
    if (
      name.startsWith('start:') &&
      app.manifest.scripts.has('start') &&
      !isForDevelopment(app.manifest.scripts.get('start')!)
    )
      continue
    return { line: scriptStart(app, name, script), source: `scripts.${name} in package.json` }
  }
  const main = app.manifest.main?.replace(/^\.\//, '')
  if (main !== undefined && /^[A-Za-z0-9._/-]{1,200}$/.test(main)) {
    const file = firstOf(app.tree, [main, `${main}.js`, `${main}/index.js`])
    const built = app.manifest.scripts.has('build') && /^(?:dist|build|lib|out)\//.test(main)
    if (file !== undefined || built)
      return { line: runFile(app, file ?? main), source: 'main in package.json' }
  }
  const entry = entryFile(app.tree)
  if (entry !== undefined) return { line: runFile(app, entry), source: entry }
  const development = app.manifest.scripts.get('dev')
  return development === undefined
    ? undefined
    : {
        line: scriptStart(app, 'dev', development),
        source: 'scripts.dev in package.json: there is no start script',
      }
}

/** The usual entry files of a server without scripts. */
export function entryFile(tree: SourceTree): string | undefined {
  return firstOf(
    tree,
    ENTRIES.flatMap((base) => EXTENSIONS.map((extension) => base + extension)).filter(
      (path) => path.includes('.') || path.startsWith('bin/'),
    ),
  )
}

function isForDevelopment(script: string): boolean {
  return /\bnodemon\b|--watch|\bts-node-dev\b|\bdev\b/.test(script)
}

/**
 * A script that is one program is started without the package manager, which would cost memory and swallow
 * the stop signal.
 * Programs of packages are found because their folder is on PATH.
 */
export function scriptStart(app: NodeApp, name: string, written: string): string {
  // The platform sets the environment: a file of it that is not in the image would stop the program before
  // its first line.
  const script = written.replace(/(?<=\s)--env-file(?:=|\s+)\S+\s+/g, '')
  const around = app.manifest.scripts.has(`pre${name}`) || app.manifest.scripts.has(`post${name}`)
  if (!around && /^bun (?:run )?[\w./-]+\.[cm]?[jt]sx?$/.test(script.trim())) return script.trim()
  if (
    around ||
    !isSimpleCommand(script) ||
    /npm_/.test(script) ||
    /^(?:npm|yarn|pnpm|bun|npx|bunx|turbo|nx|lerna)\b/.test(script.trim())
  )
    return app.script(name)
  const watched = /^nodemon\s+((?:\.\/)?[A-Za-z0-9._/-]+\.[cm]?js)$/.exec(script.trim())
  if (watched !== null) return `node ${watched[1]}`
  return script
    .trim()
    .replace(/^cross-env\s+/, '')
    .replace(/^(?:SET|set)\s+(\w+=\S+)\s+/, '$1 ')
}

/**
 * Runs one source file: Node runs TypeScript itself from version 22.18 on, projects that have a runner prefer
 * it.
 */
export function runFile(app: NodeApp, file: string): string {
  if (!/\.[cm]?tsx?$/.test(file)) return `node ${file}`
  if (uses(app, 'tsx')) return `tsx ${file}`
  if (uses(app, 'ts-node')) return `ts-node ${file}`
  return `node ${file}`
}

/**
 * The port that the source names, when it does not read `PORT`: an app that insists on 5000 is then probed at
 * 5000.
 * Looks at the file that the start command names and the usual entries.
 */
export function portOfSource(tree: SourceTree, start: string): number | undefined {
  const named = start
    .split(/[\s"']+/)
    .map((word) => word.replace(/^\.\//, ''))
    .flatMap((word) => [
      word,
      `${word}.js`,
      word.replace(/^(?:dist|build|lib|out)\//, 'src/').replace(/\.[cm]?js$/, '.ts'),
    ])
  const files = [
    ...new Set([
      ...named.filter((word) => tree.has(word)),
      entryFile(tree),
      firstOf(tree, ['src/main.ts', 'src/index.ts', 'src/server.ts']),
    ]),
  ]
  const texts = files.map((file) => skim(tree, file))
  if (
    texts.some(
      (text) => /\bPORT\b/.test(text) && /process\.env|Bun\.env|Deno\.env|import\.meta\.env/.test(text),
    )
  )
    return undefined
  for (const text of texts) {
    const found =
      /\.listen\(\s{0,20}(\d{2,5})\s{0,20}[,)]/.exec(text)?.[1] ??
      /\bport['"]?\s{0,9}[:=]\s{0,9}['"]?(\d{2,5})\b/i.exec(text)?.[1]
    if (found !== undefined && Number(found) > 0 && Number(found) < 65_536) return Number(found)
  }
  return undefined
}
