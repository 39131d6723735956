import type { Nitro } from 'nitropack/types'

const VIRTUAL = /nitro-internal-virtual\/plugins/

/**
 * Makes the build of one commit the same in every folder: Nitro names its plugins after the hash of where they lie.
 */
export default function sameBuild(nitro: Nitro): void {
  nitro.hooks.hook('rollup:before', (_nitro, config) => {
    // By then it is a list, whatever its type allows.
    const plugins = config.plugins as object[]
    plugins.push({
      name: 'same-build',
      transform(code: string, id: string) {
        if (!VIRTUAL.test(id)) return null
        const names = [...code.matchAll(/^import (_\w+) from/gm)].map(([, name]) => name!)
        const renamed = names.reduce((text, name, at) => text.replaceAll(name, `plugin_${at + 1}`), code)
        return { code: renamed, map: null }
      },
    })
  })
}
