import { at, readJson, readYaml, textAt } from '../../../text-formats.ts'
import { folderOf } from '../../../tree-queries.ts'
import { configText, type NodeApp } from '../manifest.ts'

const FOLDER = '([A-Za-z0-9._/-]{1,80})'

function setting(text: string, key: string): string | undefined {
  return new RegExp(`\\b${key}['"]?\\s{0,9}:\\s{0,9}['"\`]${FOLDER}['"\`]`)
    .exec(text)?.[1]
    ?.replace(/^\.\/|\/$/g, '')
}

function option(script: string | undefined, ...names: string[]): string | undefined {
  return new RegExp(`(?:^|\\s)(?:${names.join('|')})[ =]['"]?${FOLDER}`)
    .exec(script ?? '')?.[1]
    ?.replace(/^\.\/|\/$/g, '')
}

export function viteOutput(app: NodeApp): string {
  const config = configText(app.tree, 'vite.config')
  const written = option(app.manifest.scripts.get('build'), '--outDir') ?? setting(config, 'outDir')
  const root = setting(config, 'root')
  if (written === undefined) return root === undefined ? 'dist' : `${root}/dist`
  if (root === undefined || !written.startsWith('..'))
    return root === undefined ? written : `${root}/${written}`
  return written.replace(/^(\.\.\/)+/, '')
}

export function eleventyOutput(app: NodeApp): string {
  const text = ['eleventy.config', '.eleventy'].map((name) => configText(app.tree, name)).join('\n')
  return (
    option(app.manifest.scripts.get('build'), '--output') ??
    /dir['"]?\s{0,9}:\s{0,9}\{[^}]{0,400}?output['"]?\s{0,9}:\s{0,9}['"]([A-Za-z0-9._/-]{1,80})/
      .exec(text)?.[1]
      ?.replace(/^\.\//, '') ??
    '_site'
  )
}

export function antoraOutput(app: NodeApp): string {
  return (
    textAt(readYaml(app.tree, 'antora-playbook.yml'), 'output', 'dir')?.replace(/^\.\//, '') ?? 'build/site'
  )
}

/** Each named build has a folder of its own. */
export function polymerOutput(app: NodeApp): string {
  const builds = at(readJson(app.tree, 'polymer.json'), 'builds')
  const first = Array.isArray(builds) ? builds[0] : undefined
  const name = textAt(first, 'name') ?? textAt(first, 'preset') ?? 'default'
  return `build/${/^[\w-]{1,60}$/.test(name) ? name : 'default'}`
}

export function parcelOutput(app: NodeApp): string {
  return option(app.manifest.scripts.get('build'), '--dist-dir', '-d', '--out-dir') ?? 'dist'
}

export function vueOutput(app: NodeApp): string {
  return setting(configText(app.tree, 'vue.config'), 'outputDir') ?? 'dist'
}

/** VitePress and VuePress build next to their configuration, wherever the documents are. */
export function besideConfig(app: NodeApp, folder: string, output: string): string {
  const config = app.tree
    .files()
    .find((path) => path.startsWith(`${folder}/`) || path.includes(`/${folder}/`))
  if (config === undefined) return `${folder}/${output}`
  const parts = folderOf(config).split('/')
  const path = [...parts.slice(0, parts.indexOf(folder) + 1), output].join('/')
  return /^[A-Za-z0-9._/-]+$/.test(path) ? path : `${folder}/${output}`
}
