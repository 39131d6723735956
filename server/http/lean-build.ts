import { writeFileSync } from 'node:fs'
import * as http from 'node:http'
import { join } from 'node:path'
import { transform } from 'esbuild'
import type { Nitro } from 'nitropack/types'

/** Exports of `node:http` that load `fetch` and its like as soon as they are looked at, which `import` does. */
const HEAVY = ['default', 'CloseEvent', 'MessageEvent', 'WebSocket']
const LIGHT = Object.keys(http).filter((name) => !HEAVY.includes(name))

/** What imports get instead of a library or of a part of Node. */
const INSTEAD = new Map([
  // The server calls nobody through these; what calls out is the guarded client.
  [
    'ofetch',
    `export const Headers = undefined
export const createFetch = () => () => { throw new Error('Nothing of the server calls out in this way.') }`,
  ],
  [
    'http',
    `const http = process.getBuiltinModule('node:http')
export default http
export const { ${LIGHT.join(', ')} } = http`,
  ],
])
const PREFIX = '\0lean:'

/** The plugin of Rollup that answers some imports with less, and writes files in ASCII alone and without spaces. */
const leanPlugin = {
  name: 'lean',
  resolveId: {
    order: 'pre' as const,
    handler(source: string): string | undefined {
      const name = source.replace(/^node:/, '')
      return INSTEAD.has(name) ? PREFIX + name : undefined
    },
  },
  load: (id: string): string | undefined =>
    id.startsWith(PREFIX) ? INSTEAD.get(id.slice(PREFIX.length)) : undefined,
  /** V8 keeps a source with one character beyond Latin 1 at two bytes each, as long as the process lives. */
  async renderChunk(code: string): Promise<{ code: string; map: null }> {
    const written = await transform(code, {
      charset: 'ascii',
      legalComments: 'inline',
      target: 'node24',
      // A text stays in memory whole, for the functions that nobody has called yet. Names stay, and lines are short:
      // an error's stack says where.
      minifyWhitespace: true,
      minifySyntax: true,
      lineLimit: 160,
    })
    // Regular expressions and licences are left as they are.
    const ascii = written.code.replace(
      /[\u0080-\uffff]/g,
      (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )
    return { code: ascii, map: null }
  },
}

/**
 * Keeps out of the built server what would stay in memory for nothing: with `fetch` Node loads HTTP/2 and the
 * streams of the web, 8 MB, and docker-modem loads a whole SSH library, 10 MB, although an engine over SSH is
 * no address that Portreeve takes.
 */
export default function lean(nitro: Nitro): void {
  nitro.hooks.hook('rollup:before', (_nitro, config) => {
    config.plugins = [leanPlugin, ...(Array.isArray(config.plugins) ? config.plugins : [config.plugins])]
  })
  nitro.hooks.hook('compiled', () => {
    if (nitro.options.dev) return
    writeFileSync(
      join(nitro.options.output.serverDir, 'node_modules/docker-modem/lib/ssh.js'),
      `module.exports = () => { throw new Error('An engine over SSH is not supported.') }\n`,
    )
  })
}
