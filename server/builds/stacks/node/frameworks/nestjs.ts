import { uses } from '../manifest.ts'
import { at, readJson, textAt } from '../../../text-formats.ts'
import type { NodeFramework } from './framework.ts'

/** NestJS: the production script starts the compiled program; `nest start` would compile again. */
export const nestjs: NodeFramework = {
  name: 'nestjs',
  detect: (app) => uses(app, '@nestjs/core'),
  plan(app) {
    const cli = readJson(app.tree, 'nest-cli.json')
    const monorepo = at(cli, 'monorepo') === true
    const root = textAt(cli, 'root')
    const main =
      monorepo && root !== undefined && /^[A-Za-z0-9._/-]+$/.test(root) ? `dist/${root}/main` : 'dist/main'
    const production = app.manifest.scripts.get('start:prod')
    return {
      kind: 'server',
      build: 'nest build',
      start: production ?? `node ${main}`,
      own_start: true,
      port: 3000,
    }
  },
}
