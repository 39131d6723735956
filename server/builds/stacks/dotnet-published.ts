import type { SourceTree } from '../plan.ts'
import { at, readJson, textAt } from '../text-formats.ts'
import { filesIn } from '../tree-queries.ts'
import { compiledStack } from './compiled.ts'
import { aspnetEnvironment } from './dotnet.ts'

const PORT = 8080

/** What `dotnet publish` leaves, committed as it is: the runtime starts it, and nothing is built. */
export const dotnetPublished = compiledStack({
  name: 'dotnet',
  help: 'The output of dotnet publish: a .dll and its .runtimeconfig.json.',
  looked_for: ['*.runtimeconfig.json'],
  detect: (tree) => assembly(tree) !== undefined,
  image: 'dotnet_aspnet',
  versions(tree) {
    const file = `${assembly(tree) ?? ''}.runtimeconfig.json`
    const options = at(readJson(tree, file), 'runtimeOptions')
    const requested =
      textAt(options, 'framework', 'version') ?? textAt(options, 'tfm')?.replace(/^net(?:coreapp)?/, '')
    return [requested === undefined ? undefined : { wanted: requested, source: file }]
  },
  facts(tree) {
    const name = assembly(tree) ?? 'app'
    const web = /Microsoft\.AspNetCore\.App/.test(tree.read(`${name}.runtimeconfig.json`) ?? '')
    return {
      framework: web ? 'aspnet' : null,
      package_manager: null,
      install: null,
      build: null,
      start: `dotnet ${name}.dll`,
      port: PORT,
      source: `${name}.runtimeconfig.json`,
      runtime_env: aspnetEnvironment(PORT),
    }
  },
})

/** Name of the program, by the two files that stand beside each other. */
function assembly(tree: SourceTree): string | undefined {
  return filesIn(tree)
    .map((path) => /^([\w.-]{1,100})\.runtimeconfig\.json$/.exec(path)?.[1])
    .find((name) => name !== undefined && tree.has(`${name}.dll`))
}
