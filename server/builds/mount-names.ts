import { mountValues } from './mount-values.ts'
import { SECRETS_FILE } from './plan.ts'

/**
 * Names that a step may mount something under where the builder is older than BuildKit 0.12.5 (CVE-2024-23652). Such a
 * builder removes the file that a mount made for itself by its path, and a step that puts a link in the place of a
 * folder above decides in which folder of the server: files without content, sockets and devices of that name go. So
 * a name has to be one that nobody gives to any of these: what caches and files of projects are called.
 */
const FOLDERS = new Set(
  [
    SECRETS_FILE,
    'apk apt app archives berry build builder bun bundle bundler cabal cache caches cargo ccache composer deno deps dist',
    'dnf download downloads gems git go-build gradle hex index lib lists maven mod node_modules npm nuget packages',
    'pip pkg pnpm poetry public pypoetry registry repository resources sccache site-packages src static store target',
    'tmp turbo uv uv-cache vendor wheels workspace yarn yum',
  ]
    .join(' ')
    .split(' '),
)
/** `.npm`, `.m2`; the sockets of PostgreSQL have capitals and dots. */
const HIDDEN = /^\.(?!lock)[a-z][a-z0-9_-]*$/
/** As variables are called, and secrets that are mounted under the name of one. */
const VARIABLE = /^[A-Z][A-Z0-9_]*$/
/** `npm_token`, `github-token`. */
const SECRET = /^(?:npmrc|netrc|(?:[a-z0-9]+[_-])+(?:auth|config|credentials|key|password|secret|token))$/
const FILE =
  /^[\w.-]+\.(?:[cm]?[jt]sx?|cfg|conf|cs|csproj|crt|env|fsproj|go|gradle|ini|jar|json|kts|md|mod|pem|php|properties|props|py|rb|rs|sh|sln|sum|targets|tgz|toml|txt|whl|xml|ya?ml)$/
const LOCKS =
  /^(?:(?:Cargo|Gemfile|Pipfile|composer|bun|flake|mix|pdm|poetry|pubspec|uv|yarn)\.lock|bun\.lockb)$/
const PLAIN = /^(?:Gemfile|Makefile|Pipfile|Procfile|Rakefile|gradlew|mvnw)$/

const isHarmless = (name: string): boolean =>
  FOLDERS.has(name) || [HIDDEN, VARIABLE, SECRET, FILE, LOCKS, PLAIN].some((form) => form.test(name))

/**
 * What a flag of RUN mounts something at under a name that may be one of a socket or a device of the server, or that
 * only the builder knows; undefined where it does not. A secret without a place has that of its id.
 */
export function riskyMount(flag: string): string | undefined {
  const places = mountValues(flag, 'target', 'dst', 'destination')
  const named = places.length > 0 ? places : mountValues(flag, 'id', 'source', 'src')
  // As it is written: `..` behind a variable could make another name the last one.
  return named.find((place) => !isHarmless(place.split('/').findLast((part) => part !== '') ?? ''))
}

/** Whether the builder of an engine removes files of the server so; fixed in 24.0.9 and 25.0.2. */
export function removesByPath(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.+~-]/).map(Number)
  const release = major * 1e6 + minor * 1e3 + patch
  return !(release >= 25_000_002 || (release >= 24_000_009 && major === 24))
}
