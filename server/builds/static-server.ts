import { posix } from 'node:path'
import { say } from './checks.ts'
import { shellWord } from '#server/kernel/shell-word'
import type { Instruction } from './render-dockerfile.ts'

/** Files that nginx serves, and what it answers for a path that is no file. */
export interface StaticSite {
  /** Absolute folder in the build stage. */
  from: string
  /**
   * `spa`: every path is the app's own and gets `index.html`, or `spa_page`; `pages`: 404, with the site's own
   * page where it has one.
   */
  fallback: 'spa' | 'pages'
  /** Path of the page that a single-page app answers with, where it is not `/index.html`. */
  spa_page?: string
  /** Path of the page to answer 404 with, when the site has one. */
  not_found?: string
  /**
   * Folders of the source that hold an `index.html`: what the build wrote is none of them. Set where a build
   * may have written the site to another folder than `from`.
   */
  folders_of_source?: readonly string[]
}

const SITE = '/srv/site'
/** Names that a web root must never show, whatever the repository holds. */
const SECRET_FILES = String.raw`\.(pem|key|p12|pfx|jks|sqlite3?|bak|swp)$|/(id_rsa|id_ed25519|id_ecdsa|Dockerfile|Procfile|portreeve\.json)$`

/** Steps of the image that serves a static site, as a user that is not root, on the app's port. */
export function staticServerSteps(
  site: StaticSite,
  port: number,
  stage: string,
  owner: string,
): Instruction[] {
  const lines = serverConfiguration(site, port).map((line) => `'${line.replaceAll("'", String.raw`'\''`)}'`)
  return [
    { kind: 'run', line: `printf '%s\\n' ${lines.join(' ')} > /etc/nginx/nginx.conf` },
    { kind: 'env', values: { PORT: String(port) } },
    { kind: 'copy', from: stage, sources: [site.from], target: SITE },
    { kind: 'user', name: owner },
    { kind: 'expose', port },
    { kind: 'stop_signal', name: 'SIGQUIT' },
    { kind: 'start', line: 'nginx' },
  ]
}

/**
 * Takes out of the web root, before it is copied, what could have been committed by mistake: hidden files,
 * keys, and links, which could point at a file of the server image. A site that the build wrote elsewhere is
 * brought to its place first.
 */
export function cleanSite(site: StaticSite): Instruction {
  const names = ["'*.pem'", "'*.key'", "'*.p12'", "'*.pfx'", "'id_rsa*'", "'id_ed25519*'"]
    .map((name) => `-name ${name}`)
    .join(' -o ')
  const folder = shellWord(site.from)
  const hidden = `find ${folder} -mindepth 1 -name '.*' ! -name .well-known -prune -exec rm -rf {} +`
  return {
    kind: 'run',
    line: `${findSite(site)} && find ${folder} '(' -type l -o ${names} ')' -delete && ${hidden}`,
  }
}

/** Folders inside of the one that is named, which some generations of tools write the pages to. */
const INSIDE = ['browser', 'client', 'public', 'spa']
const DEPTHS = [1, 2, 3, 4]

/** Makes sure that the site is in its folder, whatever the build named it; says so where there is none. */
function findSite({ from, folders_of_source }: StaticSite): string {
  const folder = shellWord(from)
  const shown = posix.relative('/app', from)
  const missing = say(
    `The build left no folder \`${shown}\`.`,
    'The site is taken from there: let the build write to it, or set the start command of the app.',
  )
  if (folders_of_source === undefined) return `{ test -d ${folder} || { ${missing}; exit 1; }; }`
  const known = folders_of_source.map((path) => `! -path ${shellWord(`./${posix.join(path, 'index.html')}`)}`)
  const searched = `-name index.html ! -path '*/node_modules/*' ! -path '*/.git/*' ! -path '*/.cache/*' ${known.join(' ')}`
  return [
    `site=${folder}; found=`,
    `if [ ! -f "$site/index.html" ]; then for inside in ${INSIDE.join(' ')}; do if [ -z "$found" ] && [ -f "$site/$inside/index.html" ]; then found="$site/$inside"; fi; done; fi`,
    `if [ ! -d "$site" ]; then for depth in ${DEPTHS.join(' ')}; do if [ -z "$found" ]; then found="$(cd /app && find . -mindepth "$depth" -maxdepth "$depth" ${searched} | sort | head -n 1)"; found="\${found%/index.html}"; found="\${found:+/app/\${found#./}}"; fi; done; fi`,
    `if [ -n "$found" ]; then echo "The build left the site in \${found#/app/}, which is taken for ${shown}."; mv "$found" /tmp/site && rm -rf "$site" && mkdir -p "\${site%/*}" && mv /tmp/site "$site"; fi`,
    `test -d "$site" || { ${missing}; exit 1; }`,
  ].join('\n')
}

/** Whole configuration of nginx; everything it writes is in `/tmp`, because the user owns nothing else. */
export function serverConfiguration(site: StaticSite, port: number): string[] {
  const fallback = site.fallback === 'spa' ? (site.spa_page ?? '/index.html') : '=404'
  return [
    'daemon off;',
    'worker_processes 2;',
    'pid /tmp/nginx.pid;',
    'error_log /dev/stderr warn;',
    'events { worker_connections 4096; }',
    'http {',
    '  include /etc/nginx/mime.types;',
    '  default_type application/octet-stream;',
    '  charset utf-8;',
    '  access_log /dev/stdout;',
    '  server_tokens off;',
    '  sendfile on;',
    '  tcp_nopush on;',
    '  keepalive_timeout 75s;',
    ...['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (kind) => `  ${kind}_temp_path /tmp/${kind};`,
    ),
    '  gzip on;',
    '  gzip_vary on;',
    '  gzip_proxied any;',
    '  gzip_min_length 1024;',
    '  gzip_types text/css text/plain text/xml application/javascript text/javascript application/json application/xml application/wasm image/svg+xml font/ttf;',
    '  map $uri $cache_control {',
    '    default "no-cache";',
    '    "~*[.-](?=[A-Za-z0-9_-]*[0-9])[A-Za-z0-9_-]{8,}[.](?:js|css|woff2?|png|jpe?g|webp|avif|gif|svg)$" "public, max-age=31536000";',
    '  }',
    '  server {',
    `    listen ${port};`,
    `    root ${SITE};`,
    `    index index.html index.htm${site.fallback === 'spa' && site.spa_page !== undefined ? ` ${site.spa_page}` : ''};`,
    '    absolute_redirect off;',
    ...(site.not_found === undefined ? [] : [`    error_page 404 ${site.not_found};`]),
    '    add_header Cache-Control $cache_control always;',
    '    add_header X-Content-Type-Options nosniff always;',
    '    location ~ /[.](?!well-known/) { return 404; }',
    `    location ~* "${SECRET_FILES}" { return 404; }`,
    // A missing script must be a 404: an HTML page in its place breaks the browser's cache after a deploy.
    ...(site.fallback === 'spa'
      ? [
          '    location ~* [.](?:js|mjs|css|map|woff2?|ttf|png|jpe?g|gif|webp|avif|svg|ico|wasm)$ { try_files $uri =404; }',
        ]
      : []),
    `    location / { try_files $uri $uri.html $uri/ ${fallback}; }`,
    '  }',
    '}',
  ]
}
