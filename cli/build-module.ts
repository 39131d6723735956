import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { build } from 'esbuild'
import type { Nitro } from 'nitropack/types'
import { DETECT_WORKER } from '../server/builds/detect-apart.ts'
import { DOCKERFILE_WORKER } from '../server/builds/dockerfile-apart.ts'
import { INSPECT_WORKER } from '../server/backups/targets/inspect-apart.ts'
import { ACME_WORKER } from '../server/platform/acme/apart.ts'
import { SSH_KEY_WORKER } from '../server/ssh-keys/read-apart.ts'
import { WEBHOOK_WORKER } from '../server/webhooks/read-apart.ts'
import { virtualPlugin, namesPlugin } from './bundle-plugins.ts'
import { bundleScript, OF_PROJECTS } from './bundle-scripts.ts'

/**
 * Stays outside: the compiled part of the database lies in the folder of packages that the server was built
 * with; what speaks to engines and to other hosts is loaded by the server alone.
 */
const EXTERNAL = [
  'better-sqlite3',
  'ssh2',
  'docker-modem',
  'cpu-features',
  '@grpc/*',
  'protobufjs',
  'nodemailer',
]

/**
 * Writes the command line of a checkout as an executable file, which needs a folder of packages beside or above
 * it. Each verb is a part of its own in `portreeve-parts`, so that a call loads what it needs.
 */
export async function bundleCommandLine(root: string, file: string): Promise<void> {
  await build({
    entryPoints: { [basename(file, '.mjs')]: join(root, 'cli/portreeve.ts') },
    outdir: dirname(file),
    outExtension: { '.js': '.mjs' },
    chunkNames: 'portreeve-parts/[name]-[hash]',
    splitting: true,
    absWorkingDir: root,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node22',
    external: EXTERNAL,
    // Libraries in the older form of modules ask for parts of Node while they run.
    banner: {
      js: `import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);`,
    },
    logLevel: 'warning',
    plugins: [virtualPlugin(root), namesPlugin],
  })
  chmodSync(file, 0o755)
}

/**
 * Writes the client alone as one executable file that needs nothing but Node. The script with the verbs of projects
 * stands in it as a text, which is compiled by a call that needs it.
 */
export async function bundleClient(root: string, file: string): Promise<void> {
  const entry = 'cli/portreeve-client.ts'
  const small = await bundleScript(root, entry, OF_PROJECTS)
  const whole = await bundleScript(root, entry, /^\.\/host\//)
  const text = `#!/usr/bin/env node
import{createRequire}from'node:module';import{compileFunction,constants}from'node:vm';
const require=createRequire(import.meta.url);
const module={exports:{},whole(){compileFunction(${JSON.stringify(whole)},['require','module'],{filename:'portreeve-client',importModuleDynamically:constants.USE_MAIN_CONTEXT_DEFAULT_LOADER})(require,{exports:{}})}};
(function(){${small}
})();
`
  writeFileSync(file, text)
  chmodSync(file, 0o755)
}

/** Threads of the server and where each begins. */
const THREADS = new Map([
  [DETECT_WORKER, 'server/builds/detect-worker.ts'],
  [DOCKERFILE_WORKER, 'server/builds/dockerfile-worker.ts'],
  [ACME_WORKER, 'server/platform/acme/worker.ts'],
  [INSPECT_WORKER, 'server/backups/targets/inspect-worker.ts'],
  [WEBHOOK_WORKER, 'server/webhooks/read-worker.ts'],
  [SSH_KEY_WORKER, 'server/ssh-keys/read-worker.ts'],
])

/** Writes a thread of the server as one file. */
export async function bundleThread(root: string, name: string, file: string): Promise<void> {
  await build({
    entryPoints: [join(root, THREADS.get(name)!)],
    outfile: file,
    absWorkingDir: root,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node22',
    // Native parts of the SSH library: what they are for here it does without them.
    external: ['better-sqlite3', '*.node'],
    banner: {
      js: `import{createRequire}from'node:module';const require=createRequire(import.meta.url),__dirname=import.meta.dirname;`,
    },
    logLevel: 'warning',
  })
}

/** Puts the command line beside the server, as `.output/server/portreeve.mjs`, and its threads. */
export default function commandLine(nitro: Nitro): void {
  nitro.hooks.hook('compiled', async () => {
    if (nitro.options.dev) return
    const { rootDir, output } = nitro.options
    await bundleCommandLine(rootDir, join(output.serverDir, 'portreeve.mjs'))
    await bundleClient(rootDir, join(output.dir, 'portreeve-client.mjs'))
    // What keeps the one-file program running where there is no systemd.
    mkdirSync(join(output.serverDir, 'shell'), { recursive: true })
    for (const name of ['launch.sh', 'supervise.sh'])
      copyFileSync(join(rootDir, 'scripts/shell', name), join(output.serverDir, 'shell', name))
    for (const name of THREADS.keys()) await bundleThread(rootDir, name, join(output.serverDir, name))
  })
}
