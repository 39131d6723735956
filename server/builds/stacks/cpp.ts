import type { SourceTree } from '../plan.ts'
import { filesIn, skim } from '../tree-queries.ts'
import { compiledStack } from './compiled.ts'
import { nameIn } from './stack.ts'

const MAKEFILES = ['Makefile', 'makefile', 'GNUmakefile']
const FIND =
  "mkdir -p bin && program=\"$(find build -type f -perm -u+x ! -name '*.so*' ! -path '*CMakeFiles*' ! -path '*meson-*' ! -path '*/_deps/*' | head -n 1)\" && test -n \"$program\" && cp \"$program\" bin/app"

/** C and C++ with CMake, Meson or make. */
export const cpp = compiledStack({
  name: 'cpp',
  help: 'A CMakeLists.txt, meson.build or Makefile with C or C++ sources.',
  looked_for: ['CMakeLists.txt', 'meson.build', 'Makefile'],
  detect: (tree) =>
    !tree.has('package.json') &&
    (tree.has('CMakeLists.txt') ||
      tree.has('meson.build') ||
      (sources(tree.files()) &&
        (MAKEFILES.some((path) => tree.has(path)) ||
          filesIn(tree).some((path) => /^main\.c(?:c|pp|xx)?$/.test(path))))),
  image: 'debian',
  versions: () => [],
  facts(tree) {
    const file = filesIn(tree).find((path) => /^main\.c(?:c|pp|xx)?$/.test(path)) ?? 'main.cpp'
    const tool = toolOf(tree)
    const { build, source, packages } = tool === null ? compiler(file) : TOOLS[tool]
    const text = `${skim(tree, 'CMakeLists.txt')}\n${skim(tree, 'meson.build')}\n${skim(tree, 'conanfile.txt')}`
    return {
      framework: nameIn(text, { drogon: /\bdrogon\b/i, crow: /\bcrow\b/i, oatpp: /oatpp/ }),
      package_manager: tool,
      install: null,
      build,
      start: '/app/bin/app',
      port: 8080,
      source,
      build_packages: [
        'build-essential',
        'ca-certificates',
        'git',
        'pkg-config',
        'libssl-dev',
        'zlib1g-dev',
        ...packages,
        ...(/Boost/i.test(text) ? ['libboost-all-dev'] : []),
        ...(/CURL/.test(text) ? ['libcurl4-openssl-dev'] : []),
      ],
      runtime_packages: [
        'ca-certificates',
        'libstdc++6',
        'libssl3',
        'zlib1g',
        ...(/Boost/i.test(text) ? ['libboost-all-dev'] : []),
        ...(/CURL/.test(text) ? ['libcurl4'] : []),
      ],
      after_build: [
        tool === 'make'
          ? 'mkdir -p bin && program="$(find . -type f -perm -u+x -newer Makefile ! -name \'*.sh\' ! -name \'*.o\' ! -path \'./.git/*\' | head -n 1)" && test -n "$program" && { [ "$program" = ./bin/app ] || cp "$program" bin/app; }'
          : FIND,
      ],
    }
  },
})

const TOOLS = {
  cmake: {
    build: 'cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release && cmake --build build',
    source: 'CMakeLists.txt',
    packages: ['cmake', 'ninja-build'],
  },
  meson: {
    build: 'meson setup build --buildtype=release && meson compile -C build',
    source: 'meson.build',
    packages: ['meson', 'ninja-build'],
  },
  make: { build: 'make', source: 'Makefile', packages: [] },
} as const

/** The compiler alone, for one file without any tool. */
const compiler = (file: string) => ({
  build: `mkdir -p build && ${file.endsWith('.c') ? 'cc' : 'c++'} -O2 -o build/app ${file} -pthread`,
  source: file,
  packages: [],
})

function toolOf(tree: SourceTree): keyof typeof TOOLS | null {
  if (tree.has('CMakeLists.txt')) return 'cmake'
  if (tree.has('meson.build')) return 'meson'
  return MAKEFILES.some((path) => tree.has(path)) ? 'make' : null
}

function sources(files: readonly string[]): boolean {
  return files.some((path) => /\.(?:c|cc|cpp|cxx)$/.test(path))
}
