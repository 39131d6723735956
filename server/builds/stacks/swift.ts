import { baseImage } from '../base-images.ts'
import { firstLine, skim } from '../tree-queries.ts'
import { compiledStack } from './compiled.ts'
import { nameIn } from './stack.ts'

/** What each framework is started with, so that it listens for others. */
const ARGUMENTS = {
  vapor: ' serve --env production --hostname 0.0.0.0 --port $PORT',
  hummingbird: ' --hostname 0.0.0.0 --port $PORT',
  kitura: '',
}

/** Swift packages: one executable on the slim image with Swift's libraries. */
export const swift = compiledStack({
  name: 'swift',
  help: 'A Package.swift.',
  looked_for: ['Package.swift'],
  detect: (tree) => tree.has('Package.swift'),
  image: 'swift',
  runtime_image: (version) => baseImage('swift_runtime', version),
  versions(tree) {
    const file = firstLine(tree, '.swift-version')
    const tools = /swift-tools-version:[ ]*(\d+\.\d+)/.exec(skim(tree, 'Package.swift'))?.[1]
    // The tools version is a minimum, which the default satisfies unless it is newer.
    return [
      file === undefined ? undefined : { wanted: file, source: '.swift-version' },
      tools === undefined ? undefined : { wanted: `>=${tools}`, source: 'Package.swift' },
    ]
  },
  facts(tree) {
    const text = skim(tree, 'Package.swift')
    const name =
      /\.executable\(\s{0,40}name:\s{0,9}"([A-Za-z0-9_-]{1,60})"/.exec(text)?.[1] ??
      /\.executableTarget\(\s{0,40}name:\s{0,9}"([A-Za-z0-9_-]{1,60})"/.exec(text)?.[1] ??
      /\.target\(\s{0,40}name:\s{0,9}"(Run)"/.exec(text)?.[1] ??
      /name:\s{0,9}"([A-Za-z0-9_-]{1,60})"/.exec(text)?.[1] ??
      'App'
    const framework = nameIn(text, { vapor: /vapor\/vapor/, hummingbird: /hummingbird/, kitura: /Kitura/ })
    return {
      framework,
      package_manager: 'swiftpm',
      install: 'swift package resolve',
      build: 'swift build -c release',
      start: `/app/bin/${name}${framework === null ? '' : ARGUMENTS[framework]}`,
      port: 8080,
      source: 'Package.swift',
      manifests: ['Package.swift', 'Package.resolved'].filter((path) => tree.has(path)),
      after_build: [
        `mkdir -p bin && cp "$(swift build -c release --show-bin-path)/${name}" bin/ && find "$(swift build -c release --show-bin-path)/" -maxdepth 1 -name '*.resources' -exec cp -R {} bin/ ';' && rm -rf .build`,
      ],
      runtime_packages: ['ca-certificates', 'tzdata'],
    }
  },
})
