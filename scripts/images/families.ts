import { BASE_IMAGES, baseImage, type ImageFamilyName } from '#server/builds/base-images'
import { type EngineName, ENGINES } from '#server/databases/engines'
import { EDGE_IMAGE } from '#server/platform/ingress/image'
import { nearestVersion, type Compatibility, type Recipe, type Suite, type Wanted } from './recipe.ts'
import {
  composer,
  debian,
  golang,
  haproxy,
  java,
  mariadb,
  nginx,
  node,
  packaged,
  php,
  postgres,
  python,
  redis,
  ruby,
  rust,
} from './recipes.ts'

interface Family {
  choose: (asked: string) => Recipe | undefined
  /** Versions that are made when nothing is selected: what the tests need and most apps ask for. */
  usual: readonly string[]
}

/** Chooses among the versions that the packages really have. */
const among =
  (recipes: Record<string, Recipe>, compatibility?: Compatibility) =>
  (asked: string): Recipe | undefined => {
    const version = nearestVersion(asked, Object.keys(recipes), compatibility)
    return version === undefined ? undefined : recipes[version]
  }

/** One version for all: languages that compile what was written for an older release of theirs. */
const always = (recipe: Recipe) => (): Recipe => recipe

/** Everything of Erlang that needs no display. */
const ERLANG = ['elixir', 'erlang-nox', 'erlang-dev']

const javaVersions = (kind: 'jre' | 'jdk' | 'maven'): Record<string, Recipe> => ({
  17: java(kind, '17', 'bookworm'),
  21: java(kind, '21', 'trixie'),
  25: java(kind, '25', 'trixie'),
})

/**
 * Families of the build table that packages can stand in for. The others (dotnet, gradle, gleam, dart,
 * flutter) need a registry.
 */
const FAMILIES: Partial<Record<ImageFamilyName, Family>> = {
  debian: { choose: (asked) => debian(asked as Suite), usual: ['bookworm', 'trixie'] },
  node: { choose: node, usual: ['24', '22', '20'] },
  python: {
    choose: among({ '3.11': python('3.11', 'bookworm'), '3.13': python('3.13', 'trixie') }),
    usual: ['3.13', '3.12', '3.11'],
  },
  go: { choose: always(golang('1.25')), usual: ['1.25', '1.24', '1.23', '1.22'] },
  php: {
    choose: among({ '8.2': php('8.2', 'bookworm'), '8.4': php('8.4', 'trixie') }),
    usual: ['8.4', '8.3'],
  },
  composer: { choose: always(composer), usual: ['2'] },
  ruby: {
    choose: among({ '3.1': ruby('3.1', 'bookworm'), '3.3': ruby('3.3', 'trixie') }),
    usual: ['3.4', '3.3', '3.2'],
  },
  jdk: { choose: among(javaVersions('jdk'), 'any'), usual: ['21'] },
  jre: { choose: among(javaVersions('jre'), 'any'), usual: ['21'] },
  maven: { choose: among(javaVersions('maven'), 'any'), usual: [] },
  rust: { choose: always(rust), usual: [] },
  elixir: {
    choose: among({
      '1.14': packaged('elixir-1.14', 'bookworm', ERLANG, 'elixir', '--short-version'),
      '1.18': packaged('elixir-1.18', 'trixie', ERLANG, 'elixir', '--short-version'),
    }),
    usual: [],
  },
  clojure: {
    // Debian has Leiningen only; the other tool fetches itself over the network at its first start.
    choose: (asked) =>
      asked.endsWith('-lein')
        ? packaged('clojure-lein', 'trixie', ['leiningen', 'openjdk-21-jdk-headless'], 'java', '--version')
        : undefined,
    usual: [],
  },
  crystal: {
    choose: always(
      packaged(
        'crystal',
        'trixie',
        ['crystal', 'shards', 'libssl-dev', 'zlib1g-dev', 'git'],
        'crystal',
        '--version',
      ),
    ),
    usual: [],
  },
  haskell: {
    choose: always(
      packaged(
        'haskell',
        'trixie',
        ['ghc', 'cabal-install', 'haskell-stack', 'git'],
        'ghc',
        '--numeric-version',
      ),
    ),
    usual: [],
  },
  swift: {
    choose: always(packaged('swift', 'trixie', ['swiftlang', 'git'], 'swift', '--version')),
    usual: [],
  },
  swift_runtime: {
    choose: always(
      packaged(
        'swift-runtime',
        'trixie',
        ['libswiftlang', 'libcurl4', 'libxml2', 'tzdata'],
        'dpkg-query',
        '--show',
        'libswiftlang',
      ),
    ),
    usual: [],
  },
  perl: {
    choose: among({
      '5.36': packaged('perl-5.36', 'bookworm', ['perl', 'cpanminus', 'make'], 'perl', '-e', 'print $^V'),
      '5.40': packaged('perl-5.40', 'trixie', ['perl', 'cpanminus', 'make'], 'perl', '-e', 'print $^V'),
    }),
    usual: [],
  },
  static: { choose: always(nginx), usual: ['stable'] },
}

/** Databases whose servers Debian packages; the others need a registry. The tests need the usual lines. */
const DATABASES: Partial<Record<EngineName, { recipes: Record<string, Recipe>; usual: readonly string[] }>> =
  {
    postgres: {
      recipes: { 15: postgres('15', 'bookworm'), 17: postgres('17', 'trixie') },
      usual: ['17', '15'],
    },
    mariadb: {
      recipes: { '10.11': mariadb('10.11', 'bookworm'), '11.8': mariadb('11.8', 'trixie') },
      usual: ['11.8'],
    },
    redis: {
      recipes: { 7: redis('redis', '7', 'bookworm'), 8: redis('redis', '8', 'trixie') },
      usual: ['8'],
    },
    valkey: { recipes: { 8: redis('valkey', '8', 'trixie') }, usual: ['8'] },
  }

/**
 * Every image that Portreeve itself asks an engine for: the edge's, then the table of the generated
 * Dockerfiles.
 */
export function wantedImages(): Wanted[] {
  const names = Object.keys(BASE_IMAGES) as ImageFamilyName[]
  const edge: Wanted = {
    image: EDGE_IMAGE,
    family: 'haproxy',
    version: /:(\d+\.\d+)/.exec(EDGE_IMAGE)?.[1] ?? '',
    recipe: haproxy,
    usual: true,
    family_default: true,
  }
  return [
    edge,
    ...names.flatMap((name) =>
      BASE_IMAGES[name].versions.map(
        (version): Wanted => ({
          image: baseImage(name, version),
          family: name,
          version,
          recipe: FAMILIES[name]?.choose(version),
          usual: FAMILIES[name]?.usual.includes(version) ?? false,
          family_default: version === BASE_IMAGES[name].default_version,
        }),
      ),
    ),
    ...ENGINES.flatMap(({ name, image, lines }) =>
      lines.map(
        (line): Wanted => ({
          image: `${image}:${line}`,
          family: name,
          version: line,
          recipe: DATABASES[name]?.recipes[line],
          usual: DATABASES[name]?.usual.includes(line) ?? false,
          family_default: line === lines[0],
        }),
      ),
    ),
  ]
}
