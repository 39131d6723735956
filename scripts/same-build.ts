import type { Nitro } from 'nitropack/types'

const VIRTUAL = /nitro-internal-virtual\/(plugins|server-handlers)$/

/**
 * Makes the build of one commit the same in every folder: Nitro names plugins and handlers after the hash of
 * where they lie.
 */
export default function sameBuild(nitro: Nitro): void {
  nitro.hooks.hook('rollup:before', (_nitro, config) => {
    // By then it is a list, whatever its type allows.
    const plugins = config.plugins as object[]
    plugins.push({
      name: 'same-build',
      transform(code: string, id: string) {
        const [, kind] = VIRTUAL.exec(id) ?? []
        if (kind === undefined) return null
        const names = [...code.matchAll(/^(?:import|const) (_\w+) (?:from|=)/gm)].map(([, name]) => name!)
        const prefix = kind === 'plugins' ? 'plugin' : 'handler'
        const renamed = names.reduce(
          (text, name, at) => text.replaceAll(new RegExp(`\\b${name}\\b`, 'g'), `${prefix}_${at + 1}`),
          code,
        )
        return { code: renamed, map: null }
      },
    })
  })
}
