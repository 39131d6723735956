import { shellWord } from '#server/kernel/shell-word'
import type { SourceTree } from '../plan.ts'
import { filesIn, skim } from '../tree-queries.ts'
import { compiledStack } from './compiled.ts'

/** COBOL with the compiler of the distribution: one program, in free or fixed form. */
export const cobol = compiledStack({
  name: 'cobol',
  help: 'A program that ends in .cbl or .cob.',
  looked_for: ['index.cbl', '*.cbl', '*.cob'],
  detect: (tree) => program(tree) !== undefined && !tree.has('package.json'),
  image: 'debian',
  versions: () => [],
  facts(tree) {
    const file = program(tree) ?? 'index.cbl'
    // In fixed form the first six columns are numbers and the seventh a mark, so that no division starts
    // before the eighth.
    const free =
      /^\s{0,6}(?:identification|id)\s+division/im.test(skim(tree, file)) ||
      />>source\s+format\s+(?:is\s+)?free/i.test(skim(tree, file))
    return {
      package_manager: null,
      install: null,
      build: `mkdir -p bin && cobc -x${free ? ' -free' : ''} -o bin/app ${shellWord(file)}`,
      start: '/app/bin/app',
      port: 8080,
      source: file,
      build_packages: ['gnucobol4', 'gcc', 'libc6-dev'],
      runtime_packages: ['libcob5'],
    }
  },
})

function program(tree: SourceTree): string | undefined {
  const files = [...filesIn(tree), ...filesIn(tree, 'src')].filter((path) =>
    /\.(?:cbl|cob|cobol)$/i.test(path),
  )
  return files.find((path) => /(?:^|\/)(?:index|main|app|server)\.\w+$/i.test(path)) ?? files[0]
}
