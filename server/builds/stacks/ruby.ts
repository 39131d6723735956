import { baseImage } from '../base-images.ts'
import { own } from '#server/kernel/own'
import type { HealthCheckPlan, SourceTree } from '../plan.ts'
import { filesIn, skim } from '../tree-queries.ts'
import { chooseVersion, toolVersion, versionFile } from '../versions.ts'
import { nodeAssets } from './node/assets.ts'
import { HTTP_ROOT, TCP, because, type Commands, type Stack, type StackContext } from './stack.ts'

/** Ruby: Rails, Hanami, Rack apps and plain scripts; Jekyll and Middleman become static sites. */
export const ruby: Stack = {
  name: 'ruby',
  help: 'A Gemfile, a config.ru, or a single Ruby file.',
  looked_for: ['Gemfile', 'config.ru'],
  detect: (tree) => isRuby(tree),
  plan: planRuby,
}

const WEB_GEMS =
  /^[ \t]*gem[ \t(]+['"](?:rails|railties|sinatra|rack|rackup|puma|hanami|roda|cuba|grape|padrino|jekyll|middleman|bridgetown|unicorn|thin|webrick|falcon|iodine|nanoc|github-pages)['"]/m

/** What tells frameworks that they run in production. */
const PRODUCTION = {
  rails: { RAILS_ENV: 'production', RAILS_LOG_TO_STDOUT: '1', RAILS_SERVE_STATIC_FILES: '1' },
  server: { APP_ENV: 'production', RACK_ENV: 'production' },
  site: { JEKYLL_ENV: 'production' },
}
const BUILD_CACHES: Readonly<Record<string, string[]>> = {
  rails: ['/app/tmp/cache'],
  jekyll: ['/app/.jekyll-cache'],
}

/** A Gemfile beside a package.json may only hold tools of a mobile or front-end project. */
function isRuby(tree: SourceTree): boolean {
  if (tree.has('config.ru') || tree.has('bin/rails')) return true
  if (tree.has('Gemfile') || tree.has('gems.rb'))
    return (
      !tree.has('package.json') ||
      WEB_GEMS.test(skim(tree, 'Gemfile')) ||
      filesIn(tree).some((path) => path.endsWith('.rb'))
    )
  return (
    !tree.has('package.json') &&
    filesIn(tree).some((path) => /^(?:app|main|server|web|index|hello)\.rb$/.test(path))
  )
}

interface RubyPlan {
  framework: string | null
  start: string | null
  build: string | null
  release: string | null
  port: number
  site?: string
  http?: boolean
  path?: string
}

function planRuby({ tree, version_request }: StackContext) {
  const gems = `${skim(tree, 'Gemfile')}\n${skim(tree, 'gems.rb')}`
  const lock = tree.read('Gemfile.lock') ?? ''
  const written = /^[ \t]*ruby[ \t(]+['"]([^'"\n]{1,60})['"]/m.exec(gems)?.[1]
  const locked = /^RUBY VERSION\s{1,20}ruby (\d+\.\d+\.\d+)/m.exec(lock)?.[1]
  const version = chooseVersion('ruby', [
    version_request,
    versionFile(tree, '.ruby-version'),
    toolVersion(tree, 'ruby'),
    written === undefined ? undefined : { wanted: written, source: 'Gemfile' },
    locked === undefined ? undefined : { wanted: locked, source: 'Gemfile.lock' },
  ])
  const uses = (...names: string[]) =>
    names.some(
      (name) =>
        new RegExp(`^[ \\t]*gem[ \\t(]+['"]${name}['"]`, 'm').test(gems) ||
        new RegExp(`^ {4}${name} \\(`, 'm').test(lock),
    )
  const plan = frameworkPlan(tree, uses)
  const has_gemfile = tree.has('Gemfile') || tree.has('gems.rb')
  const install = has_gemfile ? 'bundle install' : null
  const port = plan.site === undefined ? plan.port : 8080
  return {
    stack: 'ruby',
    framework: plan.framework,
    version: version.version,
    package_manager: has_gemfile ? 'bundler' : null,
    install_command: install,
    build_command: plan.build,
    start_command: plan.site === undefined ? plan.start : null,
    release_command: plan.release,
    port,
    health_check: probeOf(plan),
    explanation: [
      ...because('stack', 'ruby', has_gemfile ? 'Gemfile' : 'Ruby files'),
      ...because('framework', plan.framework, 'Gemfile'),
      ...because('version', version.version, version.source),
      ...because('install_command', install, lock === '' ? 'Gemfile' : 'Gemfile.lock'),
      ...because('build_command', plan.build, plan.framework ?? ''),
      ...because('start_command', plan.start, plan.framework ?? 'usual entry file'),
      ...because('release_command', plan.release, 'config/database.yml'),
      ...because('static_folder', plan.site, plan.framework ?? ''),
      ...because('port', String(port), plan.site === undefined ? 'default, set as PORT' : 'nginx'),
    ],
    layout: (commands: Commands) => rubyLayout(tree, uses, plan, version.version, lock, commands),
  }
}

function probeOf({ path, site, http }: RubyPlan): HealthCheckPlan {
  if (path !== undefined) return { type: 'http', path }
  return site !== undefined || http === true ? HTTP_ROOT : TCP
}

function frameworkPlan(tree: SourceTree, uses: (...names: string[]) => boolean): RubyPlan {
  const none = { build: null, release: null }
  if (uses('rails', 'railties') || tree.has('bin/rails')) return railsPlan(tree, uses)
  if (uses('jekyll', 'github-pages'))
    return {
      ...none,
      framework: 'jekyll',
      start: null,
      // Whatever folder its configuration names.
      build: 'bundle exec jekyll build --destination _site',
      port: 8080,
      site: '_site',
    }
  if (uses('middleman'))
    return {
      ...none,
      framework: 'middleman',
      start: null,
      build: 'bundle exec middleman build',
      port: 8080,
      site: 'build',
    }
  if (uses('bridgetown'))
    return {
      ...none,
      framework: 'bridgetown',
      start: null,
      build: 'bundle exec bridgetown deploy',
      port: 8080,
      site: 'output',
    }
  if (uses('nanoc'))
    return {
      ...none,
      framework: 'nanoc',
      start: null,
      build: 'bundle exec nanoc compile',
      port: 8080,
      site: 'output',
    }
  const framework =
    (['hanami', 'padrino', 'grape', 'roda', 'cuba', 'sinatra', 'rack'] as const).find((name) => uses(name)) ??
    (tree.has('config.ru') ? 'rack' : null)
  const file =
    [
      'app.rb',
      'main.rb',
      'server.rb',
      'web.rb',
      'index.rb',
      'hello.rb',
      'src/app.rb',
      'src/main.rb',
      'lib/main.rb',
    ].find((path) => tree.has(path)) ?? filesIn(tree).find((path) => path.endsWith('.rb'))
  const run = tree.has('Gemfile') ? 'bundle exec ' : ''
  const puma_config = tree.has('config/puma.rb')
  if (tree.has('config.ru')) {
    const plain = uses('puma') ? 'puma -b tcp://0.0.0.0:$PORT' : 'rackup --host 0.0.0.0 --port $PORT'
    const start = `${run}${puma_config ? 'puma -C config/puma.rb' : plain}`
    return { ...none, framework, start, port: 9292 }
  }
  const function_name = uses('functions_framework')
    ? /FunctionsFramework\.http\s{1,5}["']([\w-]{1,80})/.exec(skim(tree, file))?.[1]
    : undefined
  if (function_name !== undefined)
    return {
      ...none,
      framework: 'functions-framework',
      start: `${run}functions-framework-ruby --source ${file} --target ${function_name} --bind 0.0.0.0 --port $PORT`,
      port: 8080,
    }
  if (file === undefined && /^\s{0,9}task[ (]+:?default\b/m.test(skim(tree, 'Rakefile')))
    return { ...none, framework, start: `${run}rake`, port: 4567 }
  if (file === undefined) return { ...none, framework, start: null, port: 4567 }
  const modular = modularApp(skim(tree, file))
  if (modular !== undefined)
    return {
      ...none,
      framework: 'sinatra',
      start: `${run}ruby -r ./${file} -e '${modular}.run! bind: "0.0.0.0", port: ENV["PORT"].to_i'`,
      port: 4567,
    }
  const sinatra = framework === 'sinatra' || /require ['"]sinatra/.test(skim(tree, file))
  return {
    ...none,
    framework: sinatra ? 'sinatra' : framework,
    start: `${run}ruby ${file}${sinatra ? ' -o 0.0.0.0 -p $PORT' : ''}`,
    port: sinatra ? 4567 : 3000,
  }
}

/** The class of an app of Sinatra that its file only declares: run as it is, that program ends at once. */
function modularApp(text: string): string | undefined {
  if (/\brun!|\brun\s{1,5}\w|\bRack::\w{1,20}::?\w{0,20}\.run/.test(text)) return undefined
  return /^[ \t]*class[ \t]+([A-Z]\w{0,60})[ \t]*<[ \t]*Sinatra::(?:Base|Application)\b/m.exec(text)?.[1]
}

function railsPlan(tree: SourceTree, uses: (...names: string[]) => boolean): RubyPlan {
  const assets =
    uses(
      'sprockets-rails',
      'propshaft',
      'webpacker',
      'shakapacker',
      'vite_rails',
      'jsbundling-rails',
      'sass-rails',
      'cssbundling-rails',
    ) || tree.files().some((path) => path.startsWith('app/assets/'))
  const start =
    tree.has('config/puma.rb') && uses('puma')
      ? 'bundle exec puma -C config/puma.rb'
      : 'bundle exec rails server -b 0.0.0.0 -p $PORT'
  const ready = /rails\/health#show/.test(skim(tree, 'config/routes.rb'))
  return {
    framework: 'rails',
    start,
    build: assets ? 'bundle exec rails assets:precompile' : null,
    release: tree.has('config/database.yml') ? 'bundle exec rails db:prepare' : null,
    port: 3000,
    path: ready ? '/up' : undefined,
  }
}

/** Gems that compile scripts through execjs, which looks for a program to do so as soon as it is loaded. */
function needsJavaScript(uses: (...names: string[]) => boolean): boolean {
  return (
    uses(
      'execjs',
      'uglifier',
      'terser',
      'coffee-rails',
      'coffee-script',
      'autoprefixer-rails',
      'bootstrap',
      'bootstrap-sass',
      'react-rails',
      'less-rails',
      'handlebars_assets',
      'babel-transpiler',
      'jekyll-coffeescript',
      'github-pages',
    ) && !uses('mini_racer', 'therubyracer', 'duktape', 'therubyrhino')
  )
}

function rubyLayout(
  tree: SourceTree,
  uses: (...names: string[]) => boolean,
  plan: RubyPlan,
  version: string,
  lock: string,
  commands: Commands,
) {
  const image = baseImage('ruby', version)
  const scripts = needsJavaScript(uses) ? ['nodejs'] : []
  const runtime = [
    'libyaml-0-2',
    ...(plan.site === undefined ? scripts : []),
    ...(uses('pg') ? ['libpq5'] : []),
    ...(uses('mysql2', 'trilogy') ? ['libmariadb3'] : []),
    ...(uses('sqlite3') ? ['libsqlite3-0'] : []),
    ...(uses('ruby-vips', 'image_processing') ? ['libvips42'] : []),
  ]
  const build = [
    'build-essential',
    'git',
    'libyaml-dev',
    'pkg-config',
    ...scripts,
    ...(uses('pg') ? ['libpq-dev'] : []),
    ...(uses('mysql2') ? ['default-libmysqlclient-dev'] : []),
    ...(uses('sqlite3') ? ['libsqlite3-dev'] : []),
    ...(uses('ruby-vips', 'image_processing') ? ['libvips'] : []),
    ...(uses('ffi', 'charlock_holmes') ? ['libffi-dev', 'libicu-dev'] : []),
  ]
  const rails = plan.framework === 'rails'
  const kind = plan.site === undefined ? 'server' : 'site'
  const production: Record<string, string> = PRODUCTION[rails ? 'rails' : kind]
  const has_gemfile = tree.has('Gemfile') || tree.has('gems.rb')
  const bundler: Record<string, string> = {
    BUNDLE_WITHOUT: plan.site === undefined ? 'development:test' : 'test',
    BUNDLE_PATH: '/usr/local/bundle',
    ...(lock === '' ? {} : { BUNDLE_FROZEN: '1' }),
  }
  const local = /\bpath:|^gemspec\b|:path\s{0,5}=>|eval_gemfile/m.test(skim(tree, 'Gemfile'))
  const needs_node = uses(
    'webpacker',
    'shakapacker',
    'vite_rails',
    'jsbundling-rails',
    'cssbundling-rails',
    'vite_ruby',
    'execjs',
    'uglifier',
  )
  const assets = rails && !needs_node ? undefined : nodeAssets(tree, rails)
  const platform =
    /^PLATFORMS$/m.test(lock) && !/^ {2}(?:ruby|x86_64-linux(?:-gnu)?|aarch64-linux(?:-gnu)?)$/m.test(lock)
  return {
    build_image: image,
    runtime_image: image,
    build_packages: has_gemfile ? build : [],
    runtime_packages: has_gemfile ? runtime : [],
    build_env: { ...production, ...bundler, BUNDLE_GLOBAL_GEM_CACHE: 'true' },
    caches: has_gemfile ? ['/root/.bundle/cache'] : [],
    build_caches: own(BUILD_CACHES, plan.framework ?? '') ?? [],
    runtime_env: { ...production, ...bundler, ...(rails ? { MALLOC_ARENA_MAX: '2' } : {}) },
    manifests:
      local || !has_gemfile
        ? []
        : ['Gemfile', 'Gemfile.lock', 'gems.rb', 'gems.locked', '.ruby-version', '.tool-versions'].filter(
            (path) => tree.has(path),
          ),
    // A lockfile from another system would be refused on this one.
    before_install: platform
      ? ['bundle config set frozen false && bundle lock --add-platform x86_64-linux aarch64-linux']
      : [],
    install: commands.install,
    // Rails builds front-end assets itself, as a part of `assets:precompile`.
    node_assets: rails && assets !== undefined ? { ...assets, build: null } : assets,
    // A build must not need the key that only the running app has.
    build:
      rails && commands.build === plan.build && commands.build !== null
        ? `SECRET_KEY_BASE_DUMMY=1 SECRET_KEY_BASE=build-only ${commands.build}`
        : commands.build,
    after_build: plan.site === undefined ? ['rm -rf node_modules tmp/cache'] : [],
    keep: [
      { from: '/usr/local/bundle', to: '/usr/local/bundle' },
      { from: '/app', to: '/app' },
    ],
    start: commands.start,
    static_site:
      plan.site !== undefined && commands.own_start
        ? { from: `/app/${plan.site}`, fallback: 'pages' as const, not_found: '/404.html' }
        : undefined,
    port: commands.port,
  }
}
