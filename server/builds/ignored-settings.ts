import type { Explanation, SourceTree } from './plan.ts'
import { asFields, at, readJson, readStrictYaml, readToml, type Fields } from './text-formats.ts'
import { skim } from './tree-queries.ts'

/** A file of another platform and what of it is understood; a path that is read covers what is below it. */
interface ForeignFile {
  files: readonly string[]
  read(tree: SourceTree, path: string): Fields | undefined
  /** Dotted paths, `*` for any key. */
  used: readonly string[]
  /** Paths whose keys are settings of their own. */
  opened?: readonly string[]
  /** Paths that only describe. */
  plain?: readonly string[]
}

const VARIABLES = ' (set variables in the app)'

const FILES: readonly ForeignFile[] = [
  {
    files: ['railpack.json'],
    read: readJson,
    used: [
      'packages',
      'buildAptPackages',
      'deploy.startCommand',
      'deploy.aptPackages',
      'steps.install.commands',
      'steps.build.commands',
    ],
    opened: ['deploy', 'steps', 'steps.*'],
    plain: ['$schema'],
  },
  {
    files: ['nixpacks.toml'],
    read: readToml,
    used: [
      'start',
      'start.cmd',
      'phases.setup.nixPkgs',
      'phases.setup.aptPkgs',
      'phases.setup.nixLibs',
      'phases.install.cmds',
      'phases.build.cmds',
    ],
    opened: ['phases', 'phases.*', 'start'],
  },
  {
    files: ['nixpacks.json'],
    read: readJson,
    used: [
      'start.cmd',
      'phases.setup.nixPkgs',
      'phases.setup.aptPkgs',
      'phases.setup.nixLibs',
      'phases.install.cmds',
      'phases.build.cmds',
    ],
    opened: ['phases', 'phases.*', 'start'],
    plain: ['$schema'],
  },
  {
    files: ['mise.toml', '.mise.toml', '.config/mise.toml'],
    read: readToml,
    used: ['tools'],
    plain: ['min_version'],
  },
  {
    files: ['app.json'],
    read: (tree, path) => {
      const file = readJson(tree, path)
      return at(file, 'expo') === undefined ? file : {}
    },
    used: ['cron', 'healthchecks.web', 'scripts.dokku.predeploy'],
    opened: ['healthchecks', 'scripts', 'scripts.dokku'],
    plain: [
      '$schema',
      'name',
      'description',
      'keywords',
      'website',
      'repository',
      'logo',
      'success_url',
      'version',
    ],
  },
  {
    files: ['Staticfile', 'static.json'],
    read: readStrictYaml,
    used: ['root', 'pushstate', 'routes', 'clean_urls'],
  },
]

const MAX_ROWS = 40

/** What these files set and what has no effect here, one row each, so that nobody looks for it elsewhere. */
export function ignoredSettings(tree: SourceTree, stack: string): Explanation[] {
  const rows = FILES.flatMap(({ files, read, used, opened = [], plain = [] }) =>
    files
      .filter((path) => tree.has(path))
      .flatMap((path) => {
        const file = read(tree, path)
        // An empty one is a mark of another platform, not a mistake.
        if (file === undefined) return tree.read(path)?.trim() ? [unreadable(path)] : []
        const known = [...used, ...plain]
        const keys = [...unusedKeys(file, '', known, opened), ...otherThanCommands(file)]
        return keys.map((key) => ignored(key, path))
      }),
  )
  return [...rows, ...directives(tree, stack)].slice(0, MAX_ROWS)
}

/** A file with a mistake in it sets nothing, and its author has to hear of it. */
const unreadable = (source: string): Explanation => ({
  field: 'warning',
  value: `${source} has no effect: it cannot be read as ${formatOf(source)}.`,
  source,
})
function formatOf(path: string): string {
  if (path.endsWith('.toml')) return 'TOML'
  return path.endsWith('.json') ? 'JSON' : 'YAML'
}

const ignored = (key: string, source: string): Explanation => ({
  field: 'ignored',
  value: `${key}${/^(?:env|variables|deploy\.variables)\b/.test(key) ? VARIABLES : ''}`,
  source,
})

/** Dotted paths of settings that are not among the known ones. */
function unusedKeys(
  value: unknown,
  above: string,
  known: readonly string[],
  opened: readonly string[],
): string[] {
  return Object.entries(asFields(value) ?? {}).flatMap(([key, inside]) => {
    const path = above === '' ? key : `${above}.${key}`
    // `start` of Nixpacks is a table or, in some files, the command itself.
    const goes_on = matches(opened, path) && asFields(inside) !== undefined
    if (goes_on) return unusedKeys(inside, path, known, opened)
    return matches(known, path) || inside === null ? [] : [path.slice(0, 120)]
  })
}

/** What stands among the commands of a step of Railpack and is none: a copy, a path, a variable. */
const otherThanCommands = (file: Fields): string[] =>
  ['install', 'build'].flatMap((step) => {
    const commands = at(file, 'steps', step, 'commands')
    return (Array.isArray(commands) ? commands : []).flatMap((one) => {
      const kind = Object.keys(asFields(one) ?? {})[0]
      const is_command = typeof one === 'string' || kind === undefined || at(one, 'cmd') !== undefined
      return is_command ? [] : [`steps.${step}.commands: ${kind.slice(0, 40)}`]
    })
  })

const matches = (patterns: readonly string[], path: string): boolean =>
  patterns.some((pattern) => {
    const [wanted, given] = [pattern.split('.'), path.split('.')]
    return wanted.length === given.length && wanted.every((part, at) => part === '*' || part === given[at])
  })

/** Directives of a Caddyfile whose meaning a static site here has anyway, or takes over. */
const CADDY_USED = new Set([
  'root',
  'file_server',
  'try_files',
  'encode',
  'import',
  'admin',
  'auto_https',
  'log',
])
const CADDY_DIRECTIVE =
  /^[ \t]*(basic_?auth|bind|forward_auth|handle(?:_errors|_path)?|header|intercept|map|php_fastcgi|redir|request_body|request_header|respond|reverse_proxy|rewrite|root|route|templates|tls|tracing|uri|vars|method|metrics|push|skip_log|error|file_server|try_files|encode|import|admin|auto_https|log)\b/gm

function directives(tree: SourceTree, stack: string): Explanation[] {
  if (!tree.has('Caddyfile')) return []
  const named = [...skim(tree, 'Caddyfile').matchAll(CADDY_DIRECTIVE)].map(([, name]) => name!)
  const used = stack === 'static' || stack === 'node' ? CADDY_USED : new Set<string>()
  return [...new Set(named)].filter((name) => !used.has(name)).map((name) => ignored(name, 'Caddyfile'))
}
