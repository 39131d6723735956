import { own } from '#server/kernel/own'

/**
 * Every image that a generated Dockerfile can name. `npm run images` makes stand-ins from the same table for
 * closed networks, so families are few, tags follow one pattern each, and nothing else in `builds` spells an
 * image name.
 */
export interface ImageFamily {
  /** Image reference; `{version}` is replaced by one of `versions`. */
  reference: string
  /** Supported versions, newest first. Tags of these versions exist on the public registry. */
  versions: readonly string[]
  /** What an app gets that asks for nothing: the current long-term release, not the newest one. */
  default_version: string
  /** Versions whose image carries another reference, because the usual pattern came after them. */
  exceptions?: Readonly<Record<string, string>>
  /**
   * Versions on a release of Debian that may have left its mirrors, so that packages must come from its
   * archive.
   */
  aged?: readonly string[]
  /** What the image must offer, for whoever builds a stand-in of it. */
  provides: string
}

/** The families by slug; keys are what stacks pass to `baseImage`. */
export const BASE_IMAGES = {
  node: {
    reference: 'node:{version}-slim',
    versions: [
      '26',
      '25',
      '24',
      '23',
      '22',
      '21',
      '20',
      '19',
      '18',
      '17',
      '16',
      '15',
      '14',
      '13',
      '12',
      '10',
      '8',
    ],
    default_version: '24',
    aged: ['17', '16', '15', '14', '13', '12', '10', '8'],
    provides: 'node, npm, npx, useradd; bun, deno, pnpm and yarn are installed from npm by the Dockerfile',
  },
  python: {
    reference: 'python:{version}-slim',
    versions: ['3.14', '3.13', '3.12', '3.11', '3.10', '3.9', '3.8', '3.7', '3.6', '2.7'],
    default_version: '3.13',
    aged: ['3.7', '3.6', '2.7'],
    provides: 'python, pip, venv, apt-get, useradd',
  },
  go: {
    reference: 'golang:{version}-bookworm',
    versions: ['1.25', '1.24', '1.23', '1.22', '1.21', '1.20', '1.19', '1.18', '1.17'],
    default_version: '1.25',
    exceptions: { '1.18': 'golang:1.18-bullseye', '1.17': 'golang:1.17-bullseye' },
    aged: ['1.18', '1.17'],
    provides: 'go, git, gcc, ca-certificates, /usr/share/zoneinfo',
  },
  php: {
    reference: 'php:{version}-apache',
    versions: ['8.5', '8.4', '8.3', '8.2', '8.1', '8.0', '7.4', '7.3', '7.2'],
    default_version: '8.4',
    aged: ['7.4', '7.3', '7.2'],
    provides:
      'php, apache2-foreground, a2enmod, docker-php-ext-install, docker-php-ext-configure, docker-php-ext-enable, pecl, apt-get, useradd',
  },
  composer: {
    reference: 'composer:{version}',
    versions: ['2'],
    default_version: '2',
    provides: '/usr/bin/composer, a single phar file',
  },
  ruby: {
    reference: 'ruby:{version}-slim',
    versions: ['4.0', '3.4', '3.3', '3.2', '3.1', '3.0', '2.7', '2.6', '2.5'],
    default_version: '3.4',
    aged: ['3.0', '2.7', '2.6', '2.5'],
    provides: 'ruby, gem, bundle, apt-get, useradd',
  },
  jdk: {
    reference: 'eclipse-temurin:{version}-jdk',
    versions: ['25', '21', '17', '11', '8'],
    default_version: '21',
    provides: 'java, javac, curl, apt-get, useradd',
  },
  jre: {
    reference: 'eclipse-temurin:{version}-jre',
    versions: ['25', '21', '17', '11', '8'],
    default_version: '21',
    provides: 'java, useradd',
  },
  maven: {
    reference: 'maven:3-eclipse-temurin-{version}',
    versions: ['25', '21', '17', '11', '8'],
    default_version: '21',
    provides: 'java, javac, mvn',
  },
  gradle: {
    reference: 'gradle:{version}',
    versions: [
      '9-jdk25',
      '9-jdk21',
      '9-jdk17',
      '8-jdk21',
      '8-jdk17',
      '8-jdk11',
      '8-jdk8',
      '7-jdk17',
      '7-jdk11',
      '7-jdk8',
      '6-jdk11',
      '6-jdk8',
    ],
    default_version: '8-jdk21',
    provides: 'java, javac, gradle',
  },
  rust: {
    reference: 'rust:{version}-bookworm',
    versions: [
      '1',
      '1.91',
      '1.90',
      '1.89',
      '1.88',
      '1.87',
      '1.86',
      '1.85',
      '1.84',
      '1.83',
      '1.82',
      '1.81',
      '1.80',
      '1.79',
      '1.78',
      '1.77',
      '1.76',
      '1.75',
      '1.74',
      '1.73',
      '1.72',
      '1.71',
      '1.70',
    ],
    default_version: '1',
    provides: 'cargo, rustc, gcc, pkg-config, libssl-dev, ca-certificates',
  },
  dotnet_sdk: {
    reference: 'mcr.microsoft.com/dotnet/sdk:{version}',
    versions: ['10.0', '9.0', '8.0', '7.0', '6.0', '5.0', '3.1'],
    default_version: '8.0',
    provides: 'dotnet with the SDK',
  },
  dotnet_aspnet: {
    reference: 'mcr.microsoft.com/dotnet/aspnet:{version}',
    versions: ['10.0', '9.0', '8.0', '7.0', '6.0', '5.0', '3.1'],
    default_version: '8.0',
    provides: 'dotnet with the ASP.NET runtime, useradd',
  },
  conda: {
    reference: 'condaforge/miniforge3:{version}',
    versions: ['latest'],
    default_version: 'latest',
    provides: 'conda, mamba, bash',
  },
  erlang: {
    reference: 'erlang:{version}-slim',
    versions: ['28', '27', '26', '25', '24'],
    default_version: '27',
    aged: ['26', '25', '24'],
    provides: 'erl, rebar3, apt-get, useradd',
  },
  julia: {
    reference: 'julia:{version}-bookworm',
    versions: ['1.12', '1.11', '1.10', '1.9'],
    default_version: '1.11',
    provides: 'julia, apt-get, useradd',
  },
  r: {
    reference: 'rocker/r-ver:{version}',
    versions: ['4.5', '4.4', '4.3', '4.2', '4.1', '4.0'],
    default_version: '4.4',
    provides: 'R, Rscript, a compiler, apt-get, useradd',
  },
  elixir: {
    reference: 'elixir:{version}-slim',
    versions: ['1.19', '1.18', '1.17', '1.16', '1.15', '1.14', '1.13', '1.12', '1.11', '1.10'],
    default_version: '1.18',
    aged: ['1.14', '1.13', '1.12', '1.11', '1.10'],
    provides: 'elixir, mix, erlang, apt-get, useradd',
  },
  gleam: {
    reference: 'ghcr.io/gleam-lang/gleam:v{version}-erlang',
    versions: [
      '1.13.0',
      '1.12.0',
      '1.11.0',
      '1.10.0',
      '1.9.0',
      '1.8.0',
      '1.7.0',
      '1.6.0',
      '1.5.0',
      '1.4.0',
      '1.3.0',
      '1.2.0',
      '1.1.0',
      '1.0.0',
    ],
    default_version: '1.13.0',
    provides: 'gleam, erl, useradd',
  },
  clojure: {
    reference: 'clojure:{version}',
    versions: [
      'temurin-25-lein',
      'temurin-21-lein',
      'temurin-17-lein',
      'temurin-11-lein',
      'temurin-8-lein',
      'temurin-25-tools-deps',
      'temurin-21-tools-deps',
      'temurin-17-tools-deps',
      'temurin-11-tools-deps',
      'temurin-8-tools-deps',
    ],
    default_version: 'temurin-21-tools-deps',
    provides: 'java with lein or clojure',
  },
  crystal: {
    reference: 'crystallang/crystal:{version}',
    versions: ['1.18.0', '1.17.0', '1.16.0', '1.15.0', '1.14.0', '1.13.0', '1.12.0', '1.11.0', '1.10.0'],
    default_version: '1.18.0',
    provides: 'crystal, shards, useradd',
  },
  haskell: {
    reference: 'haskell:{version}-slim',
    versions: ['9.12', '9.10', '9.8', '9.6', '9.4', '9.2', '9.0', '8.10'],
    default_version: '9.6',
    aged: ['9.12', '9.10', '9.8', '9.6', '9.4', '9.2', '9.0', '8.10'],
    provides: 'ghc, cabal, stack, useradd',
  },
  swift: {
    reference: 'swift:{version}',
    versions: ['6.2', '6.1', '6.0', '5.10', '5.9', '5.8', '5.7', '5.6', '5.5'],
    default_version: '6.1',
    provides: 'swift',
  },
  swift_runtime: {
    reference: 'swift:{version}-slim',
    versions: ['6.2', '6.1', '6.0', '5.10', '5.9', '5.8', '5.7', '5.6', '5.5'],
    default_version: '6.1',
    provides: 'the Swift runtime libraries, useradd',
  },
  dart: {
    reference: 'dart:{version}',
    versions: ['3', '2'],
    default_version: '3',
    provides: 'dart',
  },
  flutter: {
    reference: 'ghcr.io/cirruslabs/flutter:{version}',
    versions: ['stable'],
    default_version: 'stable',
    provides: 'flutter',
  },
  perl: {
    reference: 'perl:{version}-slim',
    versions: ['5.42', '5.40', '5.38', '5.36'],
    default_version: '5.40',
    provides: 'perl, cpanm, apt-get, useradd',
  },
  debian: {
    reference: 'debian:{version}-slim',
    versions: ['trixie', 'bookworm'],
    default_version: 'bookworm',
    provides: 'a shell, apt-get, useradd',
  },
  static: {
    reference: 'nginx:{version}',
    versions: ['stable'],
    default_version: 'stable',
    provides: 'nginx, /etc/nginx/mime.types, useradd',
  },
} as const satisfies Record<string, ImageFamily>

/** Slug of a family of base images. */
export type ImageFamilyName = keyof typeof BASE_IMAGES

/**
 * The reference of one image. Refuses a version outside the table, so that no text of a repository can reach
 * a `FROM` line.
 */
export function baseImage(
  name: ImageFamilyName,
  version: string = BASE_IMAGES[name].default_version,
): string {
  const family: ImageFamily = BASE_IMAGES[name]
  if (!family.versions.includes(version))
    throw new RangeError(`The image family ${name} has no version ${JSON.stringify(version)}.`)
  return referenceOf(family, version)
}

function referenceOf(family: ImageFamily, version: string): string {
  return own(family.exceptions, version) ?? family.reference.replace('{version}', version)
}

const AGED = new Set(
  (Object.values(BASE_IMAGES) as ImageFamily[]).flatMap((family) =>
    (family.aged ?? []).map((version) => referenceOf(family, version)),
  ),
)
/**
 * Puts the archive in the place of mirrors that no longer have the release; where they do, nothing changes.
 */
const FROM_ARCHIVE =
  "{ sed -i -E -e 's#(deb|security)[.]debian[.]org#archive.debian.org#' -e '/-updates /d' /etc/apt/sources.list && apt-get -o Acquire::Check-Valid-Until=false update; }"

/** The shell line that installs Debian packages into an image of the table. */
export function packageLine(image: string, packages: readonly string[]): string {
  const names = [...new Set(packages)].sort().join(' ')
  const update = AGED.has(image) ? `{ apt-get update || ${FROM_ARCHIVE}; }` : 'apt-get update'
  return `${update} && apt-get install -y --no-install-recommends ${names} && rm -rf /var/lib/apt/lists`
}

/** Every reference of the table: what a closed network needs at most. */
export function allBaseImages(): string[] {
  const names = Object.keys(BASE_IMAGES) as ImageFamilyName[]
  return names.flatMap((name) => BASE_IMAGES[name].versions.map((version) => baseImage(name, version)))
}
