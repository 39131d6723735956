import { join } from 'node:path'
import { build, type Plugin } from 'esbuild'
import { PROJECT_VERBS } from './verb-choice.ts'

/** Files of the verbs that a script goes without which is to be small. */
export const OF_PROJECTS = new RegExp(`^\\./client/verbs/(${PROJECT_VERBS.join('|')})\\.ts$`)

/** Verbs that are only listed in a script: their names and summaries alone are in it. */
const listed = (filter: RegExp): Plugin => ({
  name: 'listed',
  setup(bundle) {
    bundle.onResolve({ filter }, ({ path }) => ({ path, namespace: 'listed' }))
    bundle.onLoad({ filter: /.*/, namespace: 'listed' }, () => ({ contents: 'export default () => {}' }))
  },
})

/**
 * Writes a script as a function of `require` and `module`: parts of Node are loaded when they are needed, while those of
 * an ES module are when it is read.
 * @param verbs files of verbs that are only listed there.
 */
export async function bundleScript(root: string, entry: string, verbs: RegExp): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(root, entry)],
    absWorkingDir: root,
    write: false,
    bundle: true,
    minify: true,
    charset: 'ascii',
    platform: 'node',
    format: 'cjs',
    target: 'node22',
    define: { 'import.meta.url': '__own_url' },
    banner: { js: `const __own_url=require('node:url').pathToFileURL(process.execPath).href;` },
    logLevel: 'error',
    plugins: [listed(verbs)],
  })
  return outputFiles[0]!.text
}
