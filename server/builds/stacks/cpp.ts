import { filesIn, skim } from '../tree-queries.ts'
import { compiledStack } from './compiled.ts'

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
        (['Makefile', 'makefile', 'GNUmakefile'].some((path) => tree.has(path)) ||
          filesIn(tree).some((path) => /^main\.c(?:c|pp|xx)?$/.test(path))))),
  image: 'debian',
  versions: () => [],
  facts(tree) {
    const cmake = tree.has('CMakeLists.txt')
    const meson = !cmake && tree.has('meson.build')
    const make = !cmake && !meson && ['Makefile', 'makefile', 'GNUmakefile'].some((path) => tree.has(path))
    const file = filesIn(tree).find((path) => /^main\.c(?:c|pp|xx)?$/.test(path)) ?? 'main.cpp'
    const text = `${skim(tree, 'CMakeLists.txt')}\n${skim(tree, 'meson.build')}\n${skim(tree, 'conanfile.txt')}`
    const build = cmake
      ? 'cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release && cmake --build build'
      : meson
        ? 'meson setup build --buildtype=release && meson compile -C build'
        : make
          ? 'make'
          : `mkdir -p build && ${file.endsWith('.c') ? 'cc' : 'c++'} -O2 -o build/app ${file} -pthread`
    return {
      framework: /\bdrogon\b/i.test(text)
        ? 'drogon'
        : /\bcrow\b/i.test(text)
          ? 'crow'
          : /oatpp/.test(text)
            ? 'oatpp'
            : null,
      package_manager: cmake ? 'cmake' : meson ? 'meson' : make ? 'make' : null,
      install: null,
      build,
      start: '/app/bin/app',
      port: 8080,
      source: cmake ? 'CMakeLists.txt' : meson ? 'meson.build' : make ? 'Makefile' : file,
      build_packages: [
        'build-essential',
        'ca-certificates',
        'git',
        'pkg-config',
        'libssl-dev',
        'zlib1g-dev',
        ...(cmake ? ['cmake', 'ninja-build'] : meson ? ['meson', 'ninja-build'] : []),
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
        make
          ? 'mkdir -p bin && program="$(find . -type f -perm -u+x -newer Makefile ! -name \'*.sh\' ! -name \'*.o\' ! -path \'./.git/*\' | head -n 1)" && test -n "$program" && { [ "$program" = ./bin/app ] || cp "$program" bin/app; }'
          : FIND,
      ],
    }
  },
})

function sources(files: readonly string[]): boolean {
  return files.some((path) => /\.(?:c|cc|cpp|cxx)$/.test(path))
}
