import { own } from '#server/kernel/own'
import { packageLine } from '../../base-images.ts'

/** Debian packages that compile one extension, and those that stay to run it. */
interface Extension {
  build?: readonly string[]
  runtime?: readonly string[]
  configure?: string
  pecl?: boolean
}

/** Extensions that the official image can add. What PHP has built in needs no row. */
const EXTENSIONS: Readonly<Record<string, Extension>> = {
  bcmath: {},
  calendar: {},
  exif: {},
  ftp: {},
  gettext: {},
  mysqli: {},
  opcache: {},
  pcntl: {},
  pdo_mysql: {},
  shmop: {},
  sockets: {},
  sysvmsg: {},
  sysvsem: {},
  sysvshm: {},
  pdo_pgsql: { build: ['libpq-dev'], runtime: ['libpq5'] },
  pgsql: { build: ['libpq-dev'], runtime: ['libpq5'] },
  intl: { build: ['libicu-dev'] },
  zip: { build: ['libzip-dev'] },
  gd: {
    build: ['libpng-dev', 'libjpeg-dev', 'libwebp-dev', 'libfreetype-dev'],
    configure: '--with-jpeg --with-webp --with-freetype',
  },
  gmp: { build: ['libgmp-dev'] },
  soap: { build: ['libxml2-dev'] },
  xsl: { build: ['libxslt1-dev'] },
  bz2: { build: ['libbz2-dev'] },
  ldap: { build: ['libldap-dev'] },
  imagick: { build: ['libmagickwand-dev'], pecl: true },
  redis: { pecl: true },
  mongodb: { build: ['libssl-dev', 'pkg-config'], pecl: true },
  apcu: { pecl: true },
  memcached: { build: ['libmemcached-dev', 'zlib1g-dev', 'libssl-dev'], pecl: true },
}

/**
 * Lines that add the wanted extensions and skip those that the image has. Development packages stay: the
 * shared libraries that extensions load carry other names on every release of Debian.
 */
export function extensionLines(image: string, requested: readonly string[]): string[] {
  const names = [...new Set(requested.map((name) => name.toLowerCase().replace(/-/g, '_')))]
    .filter((name) => Object.hasOwn(EXTENSIONS, name))
    .sort()
  if (names.length === 0) return []
  const facts = names.map((name) => ({ name, ...own(EXTENSIONS, name)! }))
  const packages = [
    ...new Set(facts.flatMap(({ build, runtime }) => [...(build ?? []), ...(runtime ?? [])])),
  ].sort()
  const lines = packages.length === 0 ? [] : [packageLine(image, packages)]
  // `php -m` writes OPcache with its maker's name in front.
  const present = (name: string) => `php -m | grep -Eqix "(zend )?${name}"`
  const bundled = facts.filter(({ pecl }) => pecl !== true)
  const configured = bundled.filter(({ configure }) => configure !== undefined)
  lines.push(
    ...configured.map(
      ({ name, configure }) => `${present(name)} || docker-php-ext-configure ${name} ${configure}`,
    ),
  )
  if (bundled.length > 0) {
    const loop = `for name in ${bundled.map(({ name }) => name).join(' ')}; do ${present('$name')} || missing="$missing $name"; done`
    lines.push(`missing=''; ${loop}; [ -z "$missing" ] || docker-php-ext-install -j2 $missing`)
  }
  lines.push(
    ...facts
      .filter(({ pecl }) => pecl === true)
      .map(({ name }) => `${present(name)} || (pecl install ${name} && docker-php-ext-enable ${name})`),
  )
  return lines
}

/**
 * Lines that make Apache serve one folder on `$PORT` as a user that is not root. With a front controller, it
 * answers every path that is no file.
 */
export function apacheSetup(root: string, front_controller: boolean): string[] {
  const folder = root === '' ? '/app' : `/app/${root}`
  const site = [
    '<VirtualHost *:${PORT}>',
    `  DocumentRoot ${folder}`,
    '  DirectoryIndex index.php index.html',
    `  <Directory ${folder}>`,
    '    Options FollowSymLinks',
    '    AllowOverride All',
    '    Require all granted',
    ...(front_controller ? ['    FallbackResource /index.php'] : []),
    '  </Directory>',
    // What belongs to the project and not to its visitors, when the root itself is served.
    '  <FilesMatch "^(\\.|composer\\.(json|lock)$|package(-lock)?\\.json$|Procfile$|portreeve\\.json$)">',
    '    Require all denied',
    '  </FilesMatch>',
    '  <LocationMatch "/\\.(?!well-known/)">',
    '    Require all denied',
    '  </LocationMatch>',
    '  ErrorLog /dev/stderr',
    '  CustomLog /dev/stdout combined',
    '</VirtualHost>',
  ]
  const quoted = site.map((line) => `'${line}'`).join(' ')
  return [
    'a2enmod rewrite headers',
    `printf '%s\\n' 'ServerName localhost' 'ServerTokens Prod' 'PidFile /tmp/apache2.pid' 'Listen \${PORT}' > /etc/apache2/ports.conf`,
    `printf '%s\\n' ${quoted} > /etc/apache2/sites-available/000-default.conf && ln -sf ../sites-available/000-default.conf /etc/apache2/sites-enabled/000-default.conf`,
    'mkdir -p /var/run/apache2 /var/lock/apache2 /var/log/apache2 && chmod -R a+rwX /var/run/apache2 /var/lock/apache2 /var/log/apache2',
    `mkdir -p /usr/local/etc/php/conf.d && printf '%s\\n' 'expose_php=Off' 'display_errors=Off' 'log_errors=On' 'error_log=/dev/stderr' 'upload_max_filesize=64M' 'post_max_size=64M' > /usr/local/etc/php/conf.d/zz-portreeve.ini`,
  ]
}
