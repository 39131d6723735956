import { baseImage } from '../base-images.ts'
import type { SourceTree } from '../plan.ts'
import { filesWithSuffix, skim } from '../tree-queries.ts'
import { compiledStack } from './compiled.ts'

/** Compilers of Stackage's long-term releases, by the first release that has each. */
const COMPILERS = [
  [24, '9.10'],
  [23, '9.8'],
  [22, '9.6'],
  [21, '9.4'],
  [20, '9.2'],
  [19, '9.0'],
  [17, '8.10'],
] as const

/** Haskell with Stack or Cabal. */
export const haskell = compiledStack({
  name: 'haskell',
  help: 'A stack.yaml, package.yaml or .cabal file.',
  looked_for: ['stack.yaml', 'package.yaml', '*.cabal'],
  detect: (tree) =>
    ['stack.yaml', 'cabal.project'].some((path) => tree.has(path)) ||
    filesWithSuffix(tree, ['.cabal'], 0).length > 0 ||
    (tree.has('package.yaml') &&
      /^(?:executables?|library|ghc-options|dependencies):/m.test(skim(tree, 'package.yaml')) &&
      !tree.has('package.json')),
  image: 'haskell',
  runtime_image: () => baseImage('debian'),
  versions(tree) {
    const compiler =
      /compiler:[ ]*ghc-(\d+\.\d+)/.exec(skim(tree, 'stack.yaml'))?.[1] ??
      /with-compiler:[ ]*ghc-(\d+\.\d+)/.exec(skim(tree, 'cabal.project'))?.[1]
    const resolver = Number(
      /(?:resolver|snapshot):[^\n]{0,80}lts-(\d{1,2})/.exec(skim(tree, 'stack.yaml'))?.[1] ??
        /lts\/(\d{1,2})\//.exec(skim(tree, 'stack.yaml'))?.[1],
    )
    const requested = compiler ?? COMPILERS.find(([since]) => resolver >= since)?.[1]
    return [requested === undefined ? undefined : { wanted: requested, source: 'stack.yaml' }]
  },
  facts(tree) {
    const stack = tree.has('stack.yaml')
    const text = `${skim(tree, 'package.yaml')}\n${filesWithSuffix(tree, ['.cabal'], 1)
      .map((path) => skim(tree, path))
      .join('\n')}`
    const name = executable(text)
    return {
      framework:
        ['yesod', 'servant', 'scotty', 'ihp', 'spock', 'snap', 'warp'].find((word) =>
          new RegExp(`\\b${word}\\b`, 'i').test(text),
        ) ?? null,
      package_manager: stack ? 'stack' : 'cabal',
      install: stack
        ? 'stack build --system-ghc --only-dependencies'
        : 'cabal update && cabal build --only-dependencies',
      build: stack
        ? 'stack install --system-ghc --local-bin-path /app/bin'
        : 'cabal install --install-method=copy --installdir=/app/bin --overwrite-policy=always exe:*'
            .replace('exe:*', name === undefined ? '' : `exe:${name}`)
            .trim(),
      start: name === undefined ? '/app/bin/app' : `/app/bin/${name}`,
      port: 3000,
      source: stack ? 'stack.yaml' : 'the .cabal file',
      manifests: manifestsOf(tree),
      build_packages: ['ca-certificates', 'git', 'libgmp-dev', 'zlib1g-dev', 'libpq-dev', 'pkg-config'],
      runtime_packages: ['ca-certificates', 'libgmp10', 'zlib1g', 'libpq5'],
      build_env: { STACK_ROOT: '/opt/stack-root' },
      after_build: ['rm -rf dist-newstyle .stack-work'],
    }
  },
})

/** A .cabal file names source folders, which need not exist for its dependencies. */
function manifestsOf(tree: SourceTree): string[] {
  return tree
    .files()
    .filter((path) =>
      /^(?:stack\.yaml(?:\.lock)?|package\.yaml|cabal\.project(?:\.freeze)?|[^/]+\.cabal|LICENSE|README\.md|CHANGELOG\.md|ChangeLog\.md)$/.test(
        path,
      ),
    )
}

function executable(text: string): string | undefined {
  return (
    /^executable[ ]+([A-Za-z0-9_-]{1,60})/m.exec(text)?.[1] ??
    /^executables?:[ ]*\n[ ]{1,8}([A-Za-z0-9_-]{1,60}):/m.exec(text)?.[1]
  )
}
