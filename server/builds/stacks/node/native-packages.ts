import type { Manifest } from './manifest.ts'

/** Packages that are compiled when no binary fits, which happens with each new release of Node. */
const COMPILED = [
  'bcrypt',
  'sqlite3',
  'better-sqlite3',
  'canvas',
  'node-sass',
  'argon2',
  're2',
  'isolated-vm',
  'bufferutil',
  'utf-8-validate',
  'usb',
  'serialport',
  'node-gyp',
  'cpu-features',
  'robotjs',
  'pg-native',
  'libpq',
  'kerberos',
  'snappy',
  'leveldown',
  'grpc',
  'node-pty',
  'deasync',
  'sodium-native',
  'zeromq',
  'farmhash',
  'node-expat',
  'libxmljs',
  'libxmljs2',
  'odbc',
  'tree-sitter',
  'microtime',
  'heapdump',
  '@strapi/strapi',
  'hnswlib-node',
  'duckdb',
  'bigint-buffer',
  'iltorb',
]

interface Need {
  packages: readonly string[]
  build?: readonly string[]
  runtime?: readonly string[]
  env?: Readonly<Record<string, string>>
}

/** Debian packages that npm packages need beyond what the slim image has. */
const NEEDS: readonly Need[] = [
  { packages: COMPILED, build: ['python3', 'make', 'g++', 'pkg-config'] },
  {
    packages: ['prisma', '@prisma/client'],
    build: ['openssl', 'ca-certificates'],
    runtime: ['openssl', 'ca-certificates'],
  },
  { packages: ['pg-native', 'libpq'], build: ['libpq-dev'], runtime: ['libpq5'] },
  {
    packages: ['canvas'],
    build: ['libcairo2-dev', 'libpango1.0-dev', 'libjpeg-dev', 'libgif-dev', 'librsvg2-dev'],
    runtime: [
      'libcairo2',
      'libpango-1.0-0',
      'libpangocairo-1.0-0',
      'libjpeg62-turbo',
      'libgif7',
      'librsvg2-2',
    ],
  },
  {
    packages: ['puppeteer', 'puppeteer-core'],
    runtime: ['chromium', 'fonts-liberation', 'ca-certificates'],
    env: {
      PUPPETEER_SKIP_DOWNLOAD: 'true',
      PUPPETEER_SKIP_CHROMIUM_DOWNLOAD: 'true',
      PUPPETEER_EXECUTABLE_PATH: '/usr/bin/chromium',
    },
  },
  { packages: ['fluent-ffmpeg'], runtime: ['ffmpeg'] },
]

/** What the packages of all these manifests need from Debian, and the variables that go with it. */
export function systemNeeds(manifests: readonly Manifest[]): {
  build: string[]
  runtime: string[]
  env: Record<string, string>
} {
  const used = NEEDS.filter(({ packages }) =>
    manifests.some((manifest) => packages.some((name) => manifest.dependencies.has(name))),
  )
  const from_git = manifests.some((manifest) =>
    [...manifest.dependencies.values()].some((range) =>
      /^(?:git[+@:]|github:|gitlab:|bitbucket:|[\w.-]+\/[\w.-]+$)|\.git(?:#|$)/.test(range),
    ),
  )
  return {
    build: [...used.flatMap(({ build }) => build ?? []), ...(from_git ? ['git', 'ca-certificates'] : [])],
    runtime: used.flatMap(({ runtime }) => runtime ?? []),
    env: Object.assign({}, ...used.map(({ env }) => env ?? {})) as Record<string, string>,
  }
}
