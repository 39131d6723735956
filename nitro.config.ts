import { defineNitroConfig } from 'nitropack/config'
import commandLine from './cli/build-module.ts'
import dashboard from './dashboard/build-module.ts'
import sameBuild from './scripts/same-build.ts'
import endpoints from './server/http/build-module.ts'
import lean from './server/http/lean-build.ts'

export default defineNitroConfig({
  compatibilityDate: '2026-11-01',
  preset: 'node-server',
  srcDir: '.',
  // An upgrade builds beside what runs; see scripts/shell/steps.sh.
  output: { dir: process.env.OUTPUT_FOLDER || '.output' },
  scanDirs: ['server'],
  imports: false,
  sourceMap: false,
  errorHandler: '~/server/http/error-handler',
  modules: [endpoints, commandLine, dashboard, lean, sameBuild],
  // Bundled, they lose what nobody calls.
  externals: { inline: ['valibot', 'tldts'] },
  // What the Node that runs it knows is left as it is written: by itself, it would be rewritten for
  // one of 2019.
  esbuild: { options: { target: 'node22' } },
  experimental: { tasks: true, websocket: true },
  // Each wakes what the modules declare for it, whose own patterns say when.
  scheduledTasks: {
    '* * * * *': ['builds', 'backups', 'certificates', 'cleanup', 'cron', 'domains', 'metrics'],
  },
})
