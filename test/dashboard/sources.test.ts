import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ROOT } from '#test/support/routes'
import { readSources, type SourceFile } from '../meta/sources.ts'

const vue = readSources(['dashboard/src'], '.vue')
const scripts = readSources(['dashboard/src']).filter(({ path }) => !path.includes('/generated/'))
const all = [...vue, ...scripts]
const lines = ({ text }: SourceFile) => text.split('\n').length - 1
const LAYERS = ['lib', 'api', 'ui', 'shell', 'features']
/** `ui` stands beside `api`: it knows nothing of either it or the features. */
const MAY: Record<string, readonly string[]> = {
  lib: ['lib'],
  api: ['lib', 'api'],
  ui: ['lib', 'ui'],
  shell: ['lib', 'api', 'ui', 'shell'],
  features: LAYERS,
}
const importsOf = (text: string) =>
  [...text.matchAll(/(?:from|import)\s*\(?\s*'(@\/|\.{1,2}\/)([^']+)'/g)].map(
    (match) => match[1]! + match[2]!,
  )

describe('files of the dashboard', () => {
  it('are small: components have at most 250 lines, half of them at most 60', () => {
    expect(vue.filter((file) => lines(file) > 250).map(({ path }) => path)).toEqual([])
    const sizes = vue.map(lines).sort((a, b) => a - b)
    expect(sizes[Math.floor(sizes.length / 2)]).toBeLessThanOrEqual(60)
    expect(scripts.filter((file) => lines(file) > 250).map(({ path }) => path)).toEqual([])
  })
  it('import only downwards: features, shell, then ui and api, then lib', () => {
    const up = all.flatMap(({ path, text }) => {
      const layer = path.split('/')[2]!
      return importsOf(text)
        .filter(
          (target) => target.startsWith('@/') && MAY[layer] && !MAY[layer].includes(target.split('/')[1]!),
        )
        .map((target) => `${path} -> ${target}`)
    })
    expect(up).toEqual([])
  })
  it('of one feature never import another', () => {
    const across = all.flatMap(({ path, text }) => {
      const own = /features\/([^/]+)\//.exec(path)?.[1]
      return importsOf(text)
        .map((target) => /features\/([^/]+)\//.exec(target)?.[1])
        .filter((other) => other && other !== own)
        .map((other) => `${path} -> ${other}`)
    })
    expect(across).toEqual([])
  })
  it('make no markup of text, and no styles that the content security policy refuses', () => {
    const unsafe = all.filter(({ text }) =>
      /v-html|innerHTML|insertAdjacentHTML|document\.write|\sstyle="|randomUUID|new Function|\beval\(/.test(
        text,
      ),
    )
    expect(unsafe.map(({ path }) => path)).toEqual([])
  })
  it('tell what a form was refused for once: at its input, or else by the name of the field', () => {
    // An editor marks the lines itself, beside the sentence.
    const forms = vue.filter(({ text }) => !text.includes(':faults='))
    const twice = forms.filter(({ text }) =>
      [...text.matchAll(/<FormDialog[^]*?>\n/g)].some(
        ([tag]) => /:error="\w+\.error"/.test(tag) && !tag.includes(':fields='),
      ),
    )
    expect(twice.map(({ path }) => path)).toEqual([])
  })
  it('keep in the browser nothing that opens anything', () => {
    const keepers = scripts.filter(({ text }) => text.includes('localStorage')).map(({ path }) => path)
    expect(keepers).toEqual(['dashboard/src/shell/recent.ts'])
  })
  it('name colours by their role: values stand in one file', () => {
    const coloured = vue.filter(
      ({ path, text }) => !path.endsWith('shell/Logo.vue') && /#[0-9a-f]{3,8}\b|rgb\(|hsl\(/i.test(text),
    )
    expect(coloured.map(({ path }) => path)).toEqual([])
    expect(readFileSync(join(ROOT, 'dashboard/src/ui/tokens.css'), 'utf8')).toContain('--color-accent')
  })
})
