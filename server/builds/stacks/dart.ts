import { baseImage } from '../base-images.ts'
import { shellWord } from '#server/kernel/shell-word'
import { filesIn, firstOf, skim } from '../tree-queries.ts'
import { textAt, readYaml, keysAt } from '../text-formats.ts'
import type { SourceTree } from '../plan.ts'
import { compiledStack } from './compiled.ts'

const isFlutter = (tree: SourceTree) =>
  /^[ ]{2}flutter:[ ]*\n[ ]{4}sdk:[ ]*flutter/m.test(skim(tree, 'pubspec.yaml'))

/** Dart servers: one compiled program. */
export const dart = compiledStack({
  name: 'dart',
  help: 'A pubspec.yaml.',
  looked_for: ['pubspec.yaml'],
  detect: (tree) => tree.has('pubspec.yaml') && !isFlutter(tree),
  image: 'dart',
  runtime_image: () => baseImage('debian'),
  versions(tree) {
    const sdk = textAt(readYaml(tree, 'pubspec.yaml'), 'environment', 'sdk')
    return [sdk === undefined ? undefined : { wanted: sdk, source: 'pubspec.yaml' }]
  },
  facts(tree) {
    const pubspec = readYaml(tree, 'pubspec.yaml')
    const dependencies = keysAt(pubspec, 'dependencies')
    const frog = dependencies.includes('dart_frog')
    const main =
      firstOf(tree, ['bin/server.dart', 'bin/main.dart', `bin/${textAt(pubspec, 'name') ?? ''}.dart`]) ??
      filesIn(tree, 'bin').find((path) => path.endsWith('.dart')) ??
      firstOf(tree, ['lib/main.dart', 'main.dart']) ??
      'bin/server.dart'
    return {
      framework: frog
        ? 'dart-frog'
        : (['serverpod', 'shelf', 'alfred', 'conduit', 'jaspr'].find((name) => dependencies.includes(name)) ??
          null),
      package_manager: 'pub',
      install: 'dart pub get',
      build: frog
        ? 'dart pub global activate dart_frog_cli && dart pub global run dart_frog_cli:dart_frog build && mkdir -p bin && dart compile exe build/bin/server.dart -o bin/app'
        : `mkdir -p bin && dart compile exe ${shellWord(main)} -o bin/app`,
      start: '/app/bin/app',
      port: 8080,
      source: 'pubspec.yaml',
      manifests: ['pubspec.yaml', 'pubspec.lock'].filter((path) => tree.has(path)),
      after_build: ['rm -rf .dart_tool'],
      runtime_packages: ['ca-certificates'],
    }
  },
})

/** Flutter for the web: files. */
export const flutter = compiledStack({
  name: 'dart',
  help: 'A pubspec.yaml that depends on Flutter.',
  looked_for: ['pubspec.yaml'],
  detect: (tree) => tree.has('pubspec.yaml') && isFlutter(tree),
  image: 'flutter',
  versions: () => [],
  facts: (tree) => ({
    framework: 'flutter',
    package_manager: 'pub',
    install: 'flutter pub get',
    build: 'flutter build web --release',
    start: null,
    port: 8080,
    source: 'pubspec.yaml',
    manifests: ['pubspec.yaml', 'pubspec.lock'].filter((path) => tree.has(path)),
    static_site: { from: '/app/build/web', fallback: 'spa' },
  }),
})
