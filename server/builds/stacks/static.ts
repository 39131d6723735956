import { baseImage } from '../base-images.ts'
import type { SourceTree } from '../plan.ts'
import { filesIn, firstOf, joinPath, skim } from '../tree-queries.ts'
import { readStrictYaml, textAt } from '../text-formats.ts'
import { HTTP_ROOT, because, type Commands, type Stack } from './stack.ts'

const PORT = 8080
const FOLDERS = [
  '',
  'public',
  'dist',
  'build',
  'www',
  'site',
  'html',
  'htdocs',
  'public_html',
  '_site',
  'out',
  'docs',
  'src',
  'static',
  'web',
  'app',
]

/** Files for nginx, without a build. */
export const staticFiles: Stack = {
  name: 'static',
  help: 'An index.html in the root or in public, dist, build, docs or src; or a Staticfile.',
  looked_for: ['index.html', 'public/index.html', 'dist/index.html', 'Staticfile'],
  detect: (tree) => siteFolder(tree) !== undefined,
  plan({ tree }) {
    const { folder, source, spa } = siteFolder(tree) ?? { folder: '', source: 'chosen', spa: false }
    const shown = folder === '' ? '.' : folder
    return {
      stack: 'static',
      framework: null,
      version: null,
      package_manager: null,
      install_command: null,
      build_command: null,
      start_command: null,
      release_command: null,
      port: PORT,
      health_check: HTTP_ROOT,
      explanation: [
        ...because('stack', 'static', source),
        ...because('static_folder', shown, source),
        ...because('port', String(PORT), 'nginx'),
      ],
      layout: (commands: Commands) => ({
        build_image: baseImage('static'),
        runtime_image: baseImage('debian'),
        manifests: [],
        install: commands.install,
        build: commands.build,
        start: commands.start,
        port: commands.port,
        static_site: commands.own_start
          ? {
              from: folder === '' ? '/app' : `/app/${folder}`,
              fallback: spa ? ('spa' as const) : ('pages' as const),
              not_found: tree.has(folder === '' ? '404.html' : `${folder}/404.html`)
                ? '/404.html'
                : undefined,
            }
          : undefined,
      }),
    }
  },
}

/** A bundle whose one page is an empty element that a script fills: what it shows is up to the address. */
function isSinglePage(tree: SourceTree, folder: string, page: string): boolean {
  const prefix = folder === '' ? '' : `${folder}/`
  const pages = tree.files().filter((path) => path.startsWith(prefix) && /\.html?$/.test(path))
  const text = skim(tree, page)
  return (
    pages.length === 1 &&
    /<(?:div|main)\s[^>]{0,80}\bid=["']?(?:root|app|__next|__nuxt|svelte|q-app)["']?[^>]{0,80}>\s{0,20}<\/(?:div|main)>/i.test(
      text,
    ) &&
    /<script\s[^>]{0,200}\bsrc=/i.test(text)
  )
}

function siteFolder(tree: SourceTree): { folder: string; source: string; spa: boolean } | undefined {
  const declared = firstOf(tree, ['Staticfile', 'static.json'])
  if (declared !== undefined) {
    const text = skim(tree, declared)
    const settings = readStrictYaml(tree, declared)
    const root = textAt(settings, 'root') ?? ''
    const folder = root.replace(/^\.?\/+|\/+$/g, '')
    return {
      folder: /^[A-Za-z0-9._/-]*$/.test(folder) && !folder.includes('..') && folder !== '.' ? folder : '',
      source: declared,
      spa:
        settings !== undefined &&
        /pushstate['"]?:\s{0,5}['"]?(?:enabled|true)|"\/\*\*"\s{0,5}:\s{0,5}"index\.html"/.test(text),
    }
  }
  const served =
    /^[ \t]*root[ \t]+(?:\*[ \t]+)?["']?(?:\/app\/|\.\/)?([\w][\w./-]{0,80}?)\/?["']?[ \t]*$/m.exec(
      skim(tree, 'Caddyfile'),
    )?.[1]
  if (served !== undefined && !served.includes('..') && tree.has(`${served}/index.html`))
    return { folder: served, source: 'Caddyfile', spa: false }
  const folder = FOLDERS.find(
    (name) =>
      tree.has(name === '' ? 'index.html' : `${name}/index.html`) ||
      tree.has(name === '' ? 'index.htm' : `${name}/index.htm`),
  )
  if (folder !== undefined) {
    const source = joinPath(folder, tree.has(joinPath(folder, 'index.html')) ? 'index.html' : 'index.htm')
    return { folder, source, spa: isSinglePage(tree, folder, source) }
  }
  const pages = filesIn(tree).filter((path) => path.endsWith('.html'))
  return pages.length > 0 ? { folder: '', source: pages[0]!, spa: false } : undefined
}
