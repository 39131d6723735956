import { baseImage } from '../base-images.ts'
import type { SourceTree } from '../plan.ts'
import { filesIn, firstOf, hasFolder, skim } from '../tree-queries.ts'
import { readToml, readYaml, textAt } from '../text-formats.ts'
import { nodeAssets } from './node/assets.ts'
import { readPythonProject } from './python/project.ts'
import { HTTP_ROOT, because, type Commands, type Stack } from './stack.ts'

interface Generator {
  name: string
  source: string
  image: string
  packages?: readonly string[]
  setup: readonly string[]
  install?: string | null
  build: string
  output: string
}

const MACHINE = '"$(uname -m)"'
const PORT = 8080

/** Generators of static sites that are programs of their own. */
export const generators: Stack = {
  name: 'static',
  help: 'The configuration of Hugo, Zola, mdBook, MkDocs, Quarto, Lektor, Nikola, Sphinx, Pelican, Elm or Jekyll.',
  looked_for: ['hugo.toml', 'config.toml', 'book.toml', 'mkdocs.yml', 'conf.py', '_config.yml'],
  detect: (tree) => findGenerator(tree) !== undefined,
  plan({ tree }) {
    const generator = findGenerator(tree)!
    return {
      stack: 'static',
      framework: generator.name,
      version: null,
      package_manager: null,
      install_command: generator.install ?? null,
      build_command: generator.build,
      start_command: null,
      release_command: null,
      port: PORT,
      health_check: HTTP_ROOT,
      explanation: [
        ...because('stack', 'static', generator.source),
        ...because('framework', generator.name, generator.source),
        ...because('build_command', generator.build, generator.source),
        ...because('static_folder', generator.output, generator.name),
        ...because('port', String(PORT), 'nginx'),
      ],
      layout: (commands: Commands) => ({
        build_image: generator.image,
        runtime_image: generator.image,
        build_packages: generator.packages,
        build_setup: generator.setup,
        manifests: [],
        install: commands.install,
        node_assets: nodeAssets(tree),
        build: commands.build,
        start: commands.start,
        port: commands.port,
        static_site: commands.own_start
          ? {
              from: generator.output === '.' ? '/app' : `/app/${generator.output}`,
              fallback: 'pages' as const,
              not_found: '/404.html',
            }
          : undefined,
      }),
    }
  },
}

function findGenerator(tree: SourceTree): Generator | undefined {
  return (
    hugo(tree) ??
    zola(tree) ??
    mdbook(tree) ??
    mkdocs(tree) ??
    quarto(tree) ??
    lektor(tree) ??
    nikola(tree) ??
    sphinx(tree) ??
    pelican(tree) ??
    elm(tree) ??
    jekyll(tree)
  )
}

function hugo(tree: SourceTree): Generator | undefined {
  const named = firstOf(tree, [
    'hugo.toml',
    'hugo.yaml',
    'hugo.yml',
    'hugo.json',
    'config/_default/hugo.toml',
    'config/_default/hugo.yaml',
    'config/_default/config.toml',
    'config/_default/config.yaml',
  ])
  const shared = firstOf(tree, ['config.toml', 'config.yaml', 'config.yml', 'config.json'])
  const looks =
    shared !== undefined &&
    /baseurl|languageCode/i.test(skim(tree, shared)) &&
    (hasFolder(tree, 'content') ||
      hasFolder(tree, 'layouts') ||
      hasFolder(tree, 'archetypes') ||
      /^theme\b/m.test(skim(tree, shared))) &&
    !isZola(tree)
  const source = named ?? (looks ? shared : undefined)
  if (source === undefined) return undefined
  const requested =
    /HUGO_VERSION['"]?\s{0,5}[=:]\s{0,5}['"]?v?(\d+\.\d+\.\d+)/.exec(
      `${skim(tree, 'netlify.toml')}\n${skim(tree, 'render.yaml')}`,
    )?.[1] ?? '0.147.9'
  const archive = `https://github.com/gohugoio/hugo/releases/download/v${requested}/hugo_extended_${requested}_linux-`
  return {
    name: 'hugo',
    source,
    image: baseImage('go'),
    packages: ['curl', 'ca-certificates', 'git'],
    setup: [`curl -fsSL "${archive}$(dpkg --print-architecture).tar.gz" | tar -xz -C /usr/local/bin hugo`],
    build: 'hugo --gc --minify',
    output: 'public',
  }
}

function isZola(tree: SourceTree): boolean {
  const text = skim(tree, 'config.toml') + skim(tree, 'zola.toml')
  return /^base_url\s{0,5}=/m.test(text) && !/languageCode|baseURL/.test(text)
}

function zola(tree: SourceTree): Generator | undefined {
  if (
    !isZola(tree) ||
    !(hasFolder(tree, 'content') || hasFolder(tree, 'templates') || hasFolder(tree, 'themes'))
  )
    return undefined
  const archive = 'https://github.com/getzola/zola/releases/download/v0.20.0/zola-v0.20.0-'
  return {
    name: 'zola',
    source: tree.has('zola.toml') ? 'zola.toml' : 'config.toml',
    image: baseImage('debian'),
    packages: ['curl', 'ca-certificates'],
    setup: [`curl -fsSL "${archive}"${MACHINE}"-unknown-linux-gnu.tar.gz" | tar -xz -C /usr/local/bin`],
    build: 'zola build',
    output: 'public',
  }
}

function mdbook(tree: SourceTree): Generator | undefined {
  const book = readToml(tree, 'book.toml')
  if (book === undefined) return undefined
  const folder = textAt(book, 'build', 'build-dir') ?? 'book'
  return {
    name: 'mdbook',
    source: 'book.toml',
    image: baseImage('debian'),
    packages: ['curl', 'ca-certificates'],
    setup: [
      `curl -fsSL "https://github.com/rust-lang/mdBook/releases/download/v0.4.52/mdbook-v0.4.52-"${MACHINE}"-unknown-linux-musl.tar.gz" | tar -xz -C /usr/local/bin`,
    ],
    build: 'mdbook build',
    output: /^[A-Za-z0-9._/-]+$/.test(folder) ? folder : 'book',
  }
}

function mkdocs(tree: SourceTree): Generator | undefined {
  const source = firstOf(tree, ['mkdocs.yml', 'mkdocs.yaml'])
  // A library may keep its documentation beside a program; then the program is the app.
  if (source === undefined || ['manage.py', 'main.py', 'app.py'].some((path) => tree.has(path)))
    return undefined
  const folder = textAt(readYaml(tree, source), 'site_dir') ?? 'site'
  return {
    name: 'mkdocs',
    source,
    ...pythonTool(tree, 'mkdocs mkdocs-material', 'mkdocs'),
    build: 'mkdocs build',
    output: /^[A-Za-z0-9._/-]+$/.test(folder) ? folder : 'site',
  }
}

function sphinx(tree: SourceTree): Generator | undefined {
  const source = firstOf(tree, ['conf.py', 'source/conf.py', 'docs/conf.py', 'docs/source/conf.py'])
  if (source === undefined || !/^(?:extensions|html_theme|project)\s{0,5}=/m.test(skim(tree, source)))
    return undefined
  if (
    source.startsWith('docs') &&
    !readPythonProject(tree).dependencies.has('sphinx') &&
    tree.files().some((path) => /^[^/]+\.(?:py|toml)$/.test(path))
  )
    return undefined
  const folder = source === 'conf.py' ? '.' : source.replace('/conf.py', '')
  return {
    name: 'sphinx',
    source,
    ...pythonTool(tree, 'sphinx', 'sphinx', folder.startsWith('docs') ? 'docs/requirements.txt' : undefined),
    build: `sphinx-build -b html ${folder} _build/html`,
    output: '_build/html',
  }
}

/** Pages that run no code: documents with R or Python in them need a Dockerfile. */
function quarto(tree: SourceTree): Generator | undefined {
  const source = firstOf(tree, ['_quarto.yml', '_quarto.yaml'])
  if (source === undefined) return undefined
  const project = readYaml(tree, source)
  const folder =
    textAt(project, 'project', 'output-dir') ??
    (textAt(project, 'project', 'type') === 'book' ? '_book' : '_site')
  const archive = 'https://github.com/quarto-dev/quarto-cli/releases/download/v1.6.43/quarto-1.6.43-linux-'
  return {
    name: 'quarto',
    source,
    image: baseImage('debian'),
    packages: ['curl', 'ca-certificates'],
    setup: [
      `curl -fsSL "${archive}$(dpkg --print-architecture).tar.gz" | tar -xz -C /opt && ln -s /opt/quarto-*/bin/quarto /usr/local/bin/quarto`,
    ],
    build: 'quarto render',
    output: plainFolder(folder, '_site'),
  }
}

function lektor(tree: SourceTree): Generator | undefined {
  const source = filesIn(tree).find((path) => path.endsWith('.lektorproject'))
  return source === undefined
    ? undefined
    : {
        name: 'lektor',
        source,
        ...pythonTool(tree, 'lektor', 'lektor'),
        build: 'lektor build --output-path build',
        output: 'build',
      }
}

function nikola(tree: SourceTree): Generator | undefined {
  const text = skim(tree, 'conf.py')
  if (!/^BLOG_TITLE\s{0,5}=|^BLOG_AUTHOR\s{0,5}=/m.test(text)) return undefined
  const folder = /^OUTPUT_FOLDER\s{0,5}=\s{0,5}['"]([^'"\n]{1,80})/m.exec(text)?.[1] ?? 'output'
  return {
    name: 'nikola',
    source: 'conf.py',
    ...pythonTool(tree, "'nikola[extras]'", 'nikola'),
    build: 'nikola build',
    output: plainFolder(folder, 'output'),
  }
}

/** An app in Elm alone: its one page, or the script that a page of the project's own loads. */
function elm(tree: SourceTree): Generator | undefined {
  if (!tree.has('elm.json') || tree.has('package.json') || !tree.has('src/Main.elm')) return undefined
  const page = firstOf(tree, ['public/index.html', 'index.html'])
  const beside = page === 'index.html' ? '.' : 'public'
  const folder = page === undefined ? 'dist' : beside
  const script =
    page === undefined
      ? 'index.html'
      : (/src=["']\/?([\w./-]{1,80}\.js)["']/.exec(skim(tree, page))?.[1] ?? 'elm.js')
  return {
    name: 'elm',
    source: 'elm.json',
    image: baseImage('node'),
    packages: ['ca-certificates'],
    setup: ['npm install --global elm@0.19.1-6'],
    build: `elm make src/Main.elm --optimize --output=${folder}/${script}`,
    output: folder,
  }
}

/** A folder that a file names, when it can be written into a command as it is. */
function plainFolder(folder: string, otherwise: string): string {
  const clean = folder.replace(/^\.\//, '').replace(/\/+$/, '')
  return /^[A-Za-z0-9._/-]+$/.test(clean) && !clean.includes('..') ? clean : otherwise
}

function pelican(tree: SourceTree): Generator | undefined {
  if (!tree.has('pelicanconf.py')) return undefined
  return {
    name: 'pelican',
    source: 'pelicanconf.py',
    ...pythonTool(tree, 'pelican markdown', 'pelican'),
    build: `pelican content -o output -s ${tree.has('publishconf.py') ? 'publishconf.py' : 'pelicanconf.py'}`,
    output: 'output',
  }
}

/**
 * Jekyll without a Gemfile, as hosts of pages accept it: the tool comes with the plugins that such sites take
 * for granted.
 */
function jekyll(tree: SourceTree): Generator | undefined {
  if (!tree.has('_config.yml') || tree.has('Gemfile') || tree.has('package.json')) return undefined
  if (
    !['_posts', '_layouts', '_includes', '_pages'].some((folder) => hasFolder(tree, folder)) &&
    firstOf(tree, ['index.md', 'index.markdown', 'README.md']) === undefined
  )
    return undefined
  return {
    name: 'jekyll',
    source: '_config.yml',
    image: baseImage('ruby'),
    packages: ['build-essential', 'git'],
    setup: [
      'gem install --no-document jekyll minima jekyll-feed jekyll-seo-tag jekyll-sitemap jekyll-paginate jekyll-remote-theme jekyll-redirect-from kramdown-parser-gfm',
    ],
    build: 'jekyll build --destination _site',
    output: '_site',
  }
}

/** A generator from PyPI: the project's own requirements, plus the tool when they do not name it. */
function pythonTool(
  tree: SourceTree,
  otherwise: string,
  name: string,
  extra?: string,
): { image: string; packages: string[]; setup: string[]; install: string } {
  const requirements = firstOf(tree, [
    ...(extra === undefined ? [] : [extra]),
    'requirements.txt',
    'docs/requirements.txt',
  ])
  const named =
    readPythonProject(tree).dependencies.has(name) ||
    new RegExp(`^${name}\\b`, 'mi').test(skim(tree, requirements))
  const tool = named ? [] : [`pip install ${otherwise}`]
  return {
    image: baseImage('python'),
    packages: ['git'],
    setup: [],
    install:
      [...tool, ...(requirements === undefined ? [] : [`pip install -r ${requirements}`])].join(' && ') ||
      `pip install ${otherwise}`,
  }
}
