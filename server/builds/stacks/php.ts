import { baseImage } from '../base-images.ts'
import type { HealthCheckPlan, SourceTree } from '../plan.ts'
import { filesIn, firstOf, hasFolder, joinPath, skim } from '../tree-queries.ts'
import { keysAt, readJson, textAt } from '../text-formats.ts'
import { chooseVersion, toolVersion, versionFile } from '../versions.ts'
import { nodeAssets } from './node/assets.ts'
import { apacheSetup, extensionLines } from './php/apache.ts'
import { HTTP_ROOT, TCP, because, type Commands, type Stack, type StackContext } from './stack.ts'

const PORT = 8080

interface PhpFramework {
  name: string
  packages: readonly string[]
  root?: string
  extensions?: readonly string[]
  release?: string
  build?: string
  /** Folders that the app writes to. */
  writable?: readonly string[]
  env?: Readonly<Record<string, string>>
  start?: string
}

const FRAMEWORKS: readonly PhpFramework[] = [
  {
    name: 'laravel',
    packages: ['laravel/framework', 'laravel/laravel'],
    root: 'public',
    extensions: ['pdo_mysql', 'pdo_pgsql', 'bcmath', 'zip', 'gd', 'pcntl', 'intl', 'exif', 'opcache'],
    release: 'php artisan migrate --force',
    build: 'php artisan package:discover --ansi',
    env: { LOG_CHANNEL: 'stderr' },
    writable: [
      'storage/framework/cache/data',
      'storage/framework/sessions',
      'storage/framework/views',
      'storage/logs',
      'storage/app/public',
      'bootstrap/cache',
    ],
  },
  {
    name: 'lumen',
    packages: ['laravel/lumen-framework'],
    root: 'public',
    extensions: ['pdo_mysql', 'pdo_pgsql', 'bcmath', 'opcache'],
    writable: ['storage/framework/views', 'storage/logs'],
    release: 'php artisan migrate --force',
  },
  {
    name: 'symfony',
    packages: ['symfony/framework-bundle', 'symfony/symfony'],
    root: 'public',
    extensions: ['pdo_mysql', 'pdo_pgsql', 'intl', 'zip', 'opcache'],
    writable: ['var/cache', 'var/log'],
    env: { APP_ENV: 'prod', APP_DEBUG: '0' },
  },
  {
    name: 'drupal',
    packages: ['drupal/core', 'drupal/core-recommended', 'drupal/recommended-project'],
    root: 'web',
    extensions: ['pdo_mysql', 'pdo_pgsql', 'gd', 'zip', 'opcache'],
    writable: ['web/sites/default/files'],
  },
  {
    name: 'wordpress',
    packages: ['johnpbloch/wordpress', 'roots/wordpress', 'johnpbloch/wordpress-core'],
    extensions: ['mysqli', 'pdo_mysql', 'gd', 'zip', 'exif', 'intl', 'opcache'],
  },
  {
    name: 'craftcms',
    packages: ['craftcms/cms'],
    root: 'web',
    extensions: ['pdo_mysql', 'pdo_pgsql', 'gd', 'zip', 'intl', 'bcmath', 'soap', 'opcache'],
    writable: ['storage', 'web/cpresources'],
  },
  {
    name: 'codeigniter',
    packages: ['codeigniter4/framework', 'codeigniter/framework'],
    root: 'public',
    extensions: ['mysqli', 'pdo_mysql', 'intl', 'opcache'],
    writable: ['writable/cache', 'writable/logs', 'writable/session'],
  },
  {
    name: 'cakephp',
    packages: ['cakephp/cakephp'],
    root: 'webroot',
    extensions: ['pdo_mysql', 'pdo_pgsql', 'intl', 'opcache'],
    writable: ['tmp', 'logs'],
  },
  {
    name: 'yii',
    packages: ['yiisoft/yii2', 'yiisoft/yii'],
    root: 'web',
    extensions: ['pdo_mysql', 'pdo_pgsql', 'intl', 'opcache'],
    writable: ['runtime', 'web/assets'],
  },
  {
    name: 'statamic',
    packages: ['statamic/cms'],
    root: 'public',
    extensions: ['bcmath', 'gd', 'exif', 'intl', 'opcache'],
  },
  { name: 'slim', packages: ['slim/slim'], root: 'public' },
  { name: 'mezzio', packages: ['mezzio/mezzio', 'laminas/laminas-mvc'], root: 'public' },
  { name: 'flight', packages: ['mikecao/flight', 'flightphp/core'] },
  { name: 'silex', packages: ['silex/silex'], root: 'web' },
]

/** PHP behind Apache: the one server that honours the `.htaccess` files that PHP projects bring. */
export const php: Stack = {
  name: 'php',
  help: 'A composer.json or an index.php.',
  looked_for: ['composer.json', 'index.php'],
  detect: (tree) =>
    [
      'composer.json',
      'index.php',
      'public/index.php',
      'artisan',
      'wp-config-sample.php',
      'web/index.php',
      'webroot/index.php',
      'htdocs/index.php',
      'public_html/index.php',
      'www/index.php',
      'docroot/index.php',
      'html/index.php',
    ].some((path) => tree.has(path)) ||
    (filesIn(tree).some((path) => path.endsWith('.php')) && !tree.has('package.json')),
  plan: planPhp,
}

/** Laravel answers at a path of its own for probes, unless the app took it out. */
function probeOf(tree: SourceTree, framework: string | undefined): HealthCheckPlan {
  if (framework === undefined) return HTTP_ROOT
  const has_path =
    framework === 'laravel' &&
    tree.has('routes/web.php') &&
    /health:\s{0,5}['"]\/up/.test(skim(tree, 'bootstrap/app.php'))
  return has_path ? { type: 'http', path: '/up' } : TCP
}

function planPhp({ tree, version_request }: StackContext) {
  const composer = readJson(tree, 'composer.json')
  const packages = [...keysAt(composer, 'require'), ...keysAt(composer, 'require-dev')]
  const framework = frameworkOf(tree, packages)
  const requested = textAt(composer, 'config', 'platform', 'php') ?? textAt(composer, 'require', 'php')
  const version = chooseVersion('php', [
    version_request,
    versionFile(tree, '.php-version'),
    toolVersion(tree, 'php'),
    requested === undefined ? undefined : { wanted: requested, source: 'composer.json' },
  ])
  const root = documentRoot(tree, framework)
  const install =
    composer === undefined
      ? null
      : 'composer install --no-dev --no-interaction --prefer-dist --no-scripts --no-autoloader'
  const start = 'apache2-foreground'
  return {
    stack: 'php',
    framework: framework?.name ?? null,
    version: version.version,
    package_manager: composer === undefined ? null : 'composer',
    install_command: install,
    build_command: framework?.build ?? null,
    start_command: start,
    release_command: framework?.release ?? doctrineMigrations(tree, packages),
    port: PORT,
    health_check: probeOf(tree, framework?.name),
    explanation: [
      ...because('stack', 'php', composer === undefined ? 'PHP files' : 'composer.json'),
      ...because('framework', framework?.name, 'composer.json or files of the framework'),
      ...because('version', version.version, version.source),
      ...because('install_command', install, tree.has('composer.lock') ? 'composer.lock' : 'composer.json'),
      ...because('start_command', start, `Apache serves ${root === '' ? 'the root' : root}`),
      ...because('release_command', framework?.release, framework?.name ?? ''),
      ...because('port', String(PORT), 'Apache'),
    ],
    layout: (commands: Commands) => phpLayout(tree, composer, framework, version.version, root, commands),
  }
}

function frameworkOf(tree: SourceTree, packages: readonly string[]): PhpFramework | undefined {
  const named = FRAMEWORKS.find((framework) => framework.packages.some((name) => packages.includes(name)))
  if (named !== undefined) return named
  const by_file = firstOf(tree, [
    'artisan',
    'wp-config-sample.php',
    'wp-login.php',
    'bin/console',
    'system/CodeIgniter.php',
    'system/core/CodeIgniter.php',
  ])
  const name =
    by_file === undefined
      ? undefined
      : ({
          artisan: 'laravel',
          'wp-config-sample.php': 'wordpress',
          'wp-login.php': 'wordpress',
          'bin/console': 'symfony',
        }[by_file] ?? 'codeigniter')
  const found = FRAMEWORKS.find((framework) => framework.name === name)
  // Version 3 of CodeIgniter is served from its root.
  return found?.name === 'codeigniter' && !tree.has('public/index.php')
    ? { ...found, root: undefined }
    : found
}

const PLAIN_FOLDER = /^(?!.*\.\.)\w[\w./-]{0,100}$/
/** Folders that are served, the usual one first. */
const ROOTS = ['public', 'web', 'webroot', 'public_html', 'htdocs', 'www', 'html', 'src', 'docroot']

function documentRoot(tree: SourceTree, framework: PhpFramework | undefined): string {
  const declared = textAt(readJson(tree, 'composer.json'), 'extra', 'public-dir')?.replace(/\/+$/, '')
  const usual = framework?.root
  const starts = (folder: string) => tree.has(joinPath(folder, 'index.php'))
  const named = [declared, usual].find(
    (folder) => folder !== undefined && PLAIN_FOLDER.test(folder) && starts(folder),
  )
  if (named !== undefined) return named
  if (starts('')) return ''
  return ROOTS.find((folder) => starts(folder) || (!usual && tree.has(`${folder}/index.html`))) ?? usual ?? ''
}

/**
 * Heroku's name for its web servers, as a script that starts ours: Apache is configured already, so its
 * arguments are not needed.
 */
const HEROKU_SERVER = `printf '#!/bin/sh\\nexec apache2-foreground\\n' > /usr/local/bin/heroku-php-apache2 && chmod 755 /usr/local/bin/heroku-php-apache2 && ln -s heroku-php-apache2 /usr/local/bin/heroku-php-nginx`

/**
 * The folder that a Procfile such as `web: heroku-php-apache2 public/` names; undefined when the start
 * command is another.
 */
function herokuServer(tree: SourceTree, start: string | null): { root: string | undefined } | undefined {
  if (start === null || !/^(?:vendor\/bin\/)?heroku-php-(?:apache2|nginx)(?:\s|$)/.test(start))
    return undefined
  const last = start.trim().split(/\s+/).at(-1)!.replace(/\/+$/, '')
  return {
    root: /^[\w][\w./-]*$/.test(last) && !last.includes('..') && hasFolder(tree, last) ? last : undefined,
  }
}

function doctrineMigrations(tree: SourceTree, packages: readonly string[]): string | null {
  return packages.includes('doctrine/doctrine-migrations-bundle') &&
    hasFolder(tree, 'migrations') &&
    tree.files().some((path) => /^migrations\/.*\.php$/.test(path))
    ? 'php bin/console doctrine:migrations:migrate --no-interaction --allow-no-migration'
    : null
}

function phpLayout(
  tree: SourceTree,
  composer: unknown,
  framework: PhpFramework | undefined,
  version: string,
  root: string,
  commands: Commands,
) {
  const image = baseImage('php', version)
  const required = keysAt(composer, 'require')
    .filter((name) => name.startsWith('ext-'))
    .map((name) => name.slice(4))
  const mysqli = composer === undefined && framework === undefined ? ['mysqli', 'pdo_mysql'] : []
  const extensions = extensionLines(image, [...(framework?.extensions ?? []), ...required, ...mysqli])
  const composer_manifests = ['composer.json', 'composer.lock', 'symfony.lock', 'auth.json'].filter(
    (path) => tree.has(path) && path !== 'auth.json',
  )
  // A path repository or a patch is source that the install needs.
  const needs_source = /"type"\s{0,5}:\s{0,5}"path"|composer-patches|wikimedia\/composer-merge-plugin/.test(
    tree.read('composer.json') ?? '',
  )
  const writable = framework?.writable ?? []
  const heroku = herokuServer(tree, commands.start)
  return {
    build_image: image,
    runtime_image: image,
    build_packages: composer === undefined ? [] : ['git', 'unzip'],
    base_setup: extensions,
    build_copies:
      composer === undefined
        ? []
        : [
            {
              image: baseImage('composer'),
              from: '/usr/bin/composer',
              to: '/usr/local/bin/composer',
            },
          ],
    runtime_setup: [
      ...apacheSetup(heroku?.root ?? root, framework !== undefined),
      ...(heroku === undefined ? [] : [HEROKU_SERVER]),
    ],
    build_env: {
      COMPOSER_ALLOW_SUPERUSER: '1',
      COMPOSER_NO_INTERACTION: '1',
      COMPOSER_CACHE_DIR: '/root/.cache/composer',
      ...framework?.env,
    },
    runtime_env: { APACHE_RUN_USER: '#10001', APACHE_RUN_GROUP: '#10001', ...framework?.env },
    manifests: needs_source ? [] : composer_manifests,
    install: commands.install,
    node_assets: nodeAssets(tree),
    before_build: [
      ...(writable.length > 0 ? [`mkdir -p ${writable.join(' ')}`] : []),
      ...(composer === undefined ? [] : ['composer dump-autoload --optimize --no-dev --no-scripts']),
    ],
    build: commands.build,
    after_build: ['rm -rf node_modules'],
    // The buildpack's package would put it into vendor/bin; ours is on the PATH.
    start: heroku === undefined ? commands.start : commands.start!.replace(/^vendor\/bin\//, ''),
    stop_signal: commands.own_start ? 'SIGWINCH' : undefined,
    port: commands.port,
  }
}
