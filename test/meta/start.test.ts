import { describe, expect, it } from 'vitest'
import { readSources, targetOf, type SourceFile } from './sources.ts'

/**
 * Libraries of single features. Each costs a start 10 to 130 ms of processor time and an idle server 3 to 30
 * MB.
 */
const LARGE = [
  '@grpc/grpc-js',
  'protobufjs',
  'docker-modem',
  'dockerode',
  'dockerfile-ast',
  'ssh2',
  'undici',
  'nodemailer',
  'acme-client',
  'yaml',
  'smol-toml',
  'confbox',
  'semver',
  'jose',
  'otplib',
  'uqr',
  'scrypt-kdf',
  'tar-stream',
  '@valibot/to-json-schema',
]
/**
 * What is loaded before the server is ready: the plugins, what they load at once, and what answers a first
 * request.
 */
const ROOTS = [
  'server/plugins/boot',
  'server/plugins/websocket',
  'server/middleware/entrance',
  'server/start/adapters',
  'server/modules',
  'routes/healthz.get',
  'routes/readyz.get',
]

const files = new Map(readSources(['server', 'routes']).map((file) => [file.path.replace(/\.ts$/, ''), file]))

/** What a file loads together with itself: imports of values that are not dynamic. */
function loadedWith({ path, text }: SourceFile): string[] {
  const statements = [
    ...text.matchAll(
      /^(?:import|export)\s+(?!type\b)([^'"]*?)from\s+['"]([^'"]+)['"]|^import\s+['"]([^'"]+)['"]/gm,
    ),
  ]
  const values = statements.filter(
    ([, names]) => !names || !/^\{\s*(?:type\s+[\w$]+(?:\s+as\s+[\w$]+)?\s*,?\s*)+\}\s*$/.test(names),
  )
  return values
    .map(([, , from, bare]) => from ?? bare ?? '')
    .map((specifier) => targetOf(specifier, path) ?? specifier)
}

/** Ways from a root to a large library, as they are loaded one through the other. */
function largeLibraries(path: string, way: readonly string[], seen: Set<string>): string[] {
  const file = files.get(path)
  if (!file || seen.has(path)) return []
  seen.add(path)
  return loadedWith(file).flatMap((target) => {
    const library = LARGE.find((name) => target === name || target.startsWith(`${name}/`))
    return library ? [[...way, path, library].join(' -> ')] : largeLibraries(target, [...way, path], seen)
  })
}

describe('a start', () => {
  it('loads no library that only some feature needs: such a library comes with import() where it is first used', () => {
    const seen = new Set<string>()
    expect(ROOTS.filter((root) => !files.has(root))).toEqual([])
    expect(ROOTS.flatMap((root) => largeLibraries(root, [], seen))).toEqual([])
    expect(seen.size).toBeGreaterThan(100)
  })
  it('would be seen to load one', () => {
    expect(largeLibraries('server/builds/detect', [], new Set()).some((way) => way.endsWith('-> yaml'))).toBe(
      true,
    )
  })
})
