import type { BuildLayout } from './layout.ts'
import type { Explanation, SourceTree } from './plan.ts'
import { at, readJson, readToml, readYaml, textAt } from './text-formats.ts'
import { firstOf, joinPath, skim } from './tree-queries.ts'

const PAGE = /^\/?(?:index\.html)?$/
/** A rule that takes every address: of the hosts of static sites, in the words of each. */
const EVERYTHING =
  /^\^?\/?(?:\*{1,2}|\.\*|\(\.\*\)|\(\.\+\)|:path\*|\(\.\*\)\/?|:\w+\*|\(\(\?!.*\)\.\*\))\$?$/

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value.slice(0, 200) : [])

/** Whether one of these rules answers everything with the one page of the site. */
const rewrites = (rules: unknown, from: string, to: string): boolean =>
  listOf(rules).some(
    (rule) => EVERYTHING.test(textAt(rule, from) ?? '') && PAGE.test(textAt(rule, to) ?? 'none'),
  )

/** The patterns of lines go back over a line for each word of it. */
const LONGEST_LINE = 500
const hasLine = (tree: SourceTree, path: string, pattern: RegExp): boolean =>
  skim(tree, path)
    .split('\n')
    .some((line) => pattern.test(line.slice(0, LONGEST_LINE)))

const TRY_FILES = /^[^#]*\btry_files\b[^;]*\/index\.html\b/
/** Caddy: every address that is no file is answered with the page. */
const CADDY_REWRITE = /^[^#]*\brewrite[ \t]+(?:(?:\*|@\w+|\/\*)[ \t]*)?\/index\.html\b/
/** Apache: a rule for every address that is no file, or its own word for that. */
const APACHE =
  /^[ \t]*(?:RewriteRule[ \t]+(?:\^|\.|\.\*|\^\.\*\$?|\^\(\.\*\)\$)[ \t]+\/?index\.html\b|FallbackResource[ \t]+\/?index\.html\b)/i
/** IIS: the action of a rule. */
const IIS = /<action\b[^>]{0,200}\btype="Rewrite"[^>]{0,200}\burl="\/?(?:index\.html)?"/i

const NGINX = ['nginx.conf', 'nginx/nginx.conf', 'nginx/default.conf', 'default.conf', 'conf/nginx.conf']

/** Settings of hosts of static sites that make a site a single-page app. */
const RULES: readonly { files: readonly string[]; says(tree: SourceTree, path: string): boolean }[] = [
  {
    files: ['_redirects', 'public/_redirects', 'static/_redirects'],
    says: (tree, path) => /^\/\*[ \t]+\/(?:index\.html)?[ \t]+200\b/m.test(skim(tree, path)),
  },
  {
    files: ['netlify.toml'],
    says: (tree, path) =>
      listOf(at(readToml(tree, path), 'redirects')).some(
        (rule) => at(rule, 'status') === 200 && rewrites([rule], 'from', 'to'),
      ),
  },
  {
    files: ['vercel.json', 'now.json'],
    says: (tree, path) =>
      rewrites(at(readJson(tree, path), 'rewrites'), 'source', 'destination') ||
      rewrites(at(readJson(tree, path), 'routes'), 'src', 'dest'),
  },
  {
    files: ['serve.json'],
    says: (tree, path) => rewrites(at(readJson(tree, path), 'rewrites'), 'source', 'destination'),
  },
  {
    files: ['firebase.json'],
    says: (tree, path) =>
      // One site, or a list of several.
      [at(readJson(tree, path), 'hosting')]
        .flat()
        .some((site) => rewrites(at(site, 'rewrites'), 'source', 'destination')),
  },
  {
    files: ['staticwebapp.config.json', 'public/staticwebapp.config.json'],
    says: (tree, path) => PAGE.test(textAt(readJson(tree, path), 'navigationFallback', 'rewrite') ?? 'none'),
  },
  {
    files: ['wrangler.json', 'wrangler.jsonc', 'wrangler.toml'],
    says: (tree, path) =>
      /not_found_handling['"]?\s{0,5}[:=]\s{0,5}['"]single-page-application/.test(skim(tree, path)),
  },
  {
    files: ['.do/app.yaml'],
    says: (tree, path) =>
      listOf(at(readYaml(tree, path), 'static_sites')).some((site) =>
        PAGE.test(textAt(site, 'catchall_document') ?? 'none'),
      ),
  },
  {
    files: ['render.yaml'],
    says: (tree, path) =>
      listOf(at(readYaml(tree, path), 'services')).some((service) =>
        rewrites(
          listOf(at(service, 'routes')).filter((rule) => textAt(rule, 'type') === 'rewrite'),
          'source',
          'destination',
        ),
      ),
  },
  {
    files: ['Caddyfile'],
    says: (tree, path) => hasLine(tree, path, TRY_FILES) || hasLine(tree, path, CADDY_REWRITE),
  },
  {
    files: NGINX.flatMap((path) => [path, `${path}.template`]),
    says: (tree, path) => hasLine(tree, path, TRY_FILES),
  },
  {
    files: ['.htaccess', 'public/.htaccess', 'static/.htaccess'],
    says: (tree, path) => hasLine(tree, path, APACHE),
  },
  { files: ['web.config', 'public/web.config'], says: (tree, path) => IIS.test(skim(tree, path)) },
]

/** The file that makes the site a single-page app; hosts read theirs in the folder that is served, too. */
function declaredBy(tree: SourceTree, served: string): string | undefined {
  for (const { files, says } of RULES) {
    const inside = files.filter((file) => !file.includes('/')).map((file) => joinPath(served, file))
    const path = firstOf(tree, [...files, ...inside])
    if (path !== undefined && says(tree, path)) return path
  }
  return undefined
}

const NOT_FOUND = ['public/404.html', 'static/404.html', '404.html']

/**
 * What a site answers for an address that is no file: as a setting for a host of static sites says, then its own
 * page for what is missing, then what is usual for its framework.
 */
export function withFallback(
  tree: SourceTree,
  layout: BuildLayout,
): { layout: BuildLayout; explanation: Explanation[] } {
  const { static_site } = layout
  if (static_site === undefined) return { layout, explanation: [] }
  const source = declaredBy(tree, static_site.from.replace(/^\/app\/?/, ''))
  if (source !== undefined && static_site.fallback === 'pages')
    return {
      layout: { ...layout, static_site: { ...static_site, fallback: 'spa', not_found: undefined } },
      explanation: [{ field: 'fallback', value: '/index.html', source }],
    }
  const page = firstOf(tree, NOT_FOUND)
  if (source === undefined && static_site.fallback === 'spa' && page !== undefined)
    return {
      layout: { ...layout, static_site: { ...static_site, fallback: 'pages', not_found: '/404.html' } },
      explanation: [{ field: 'fallback', value: '/404.html', source: page }],
    }
  return { layout, explanation: [] }
}
