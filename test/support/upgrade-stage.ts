import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  cpSync,
  type FSWatcher,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  watch,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import Database from 'better-sqlite3'
import { writeBinary } from '../../scripts/binary-file.ts'
import { docker, eventually, freePorts } from './portreeve.ts'
import { ROOT } from './routes.ts'

/** Anything real on a slow machine. */
const LIMIT_MS = 300_000

export interface Ran {
  code: number | null
  output: string
}
/** A program installed under a supervisor, with releases to upgrade it to. */
export interface UpgradeStage {
  folder: string
  program: string
  data: string
  /** A release folder made of this build, with something of it changed. */
  release(version: string, change: (output: string) => void): Promise<string>
  /** The program of a release stands alone, on a data folder without anything, and is ready. */
  install(place: string): Promise<void>
  run(...args: string[]): Promise<Ran>
  version(): Promise<string>
  ready(): Promise<void>
  /** Number of the newest migration of the database, and the names of its projects. */
  database(): { schema: number; projects: string[] }
  /** `kill -9` of everything that runs the program, at this change of the files of an upgrade; see `changes`. */
  killAt(is_due: (change: string, number: number) => boolean): { changes: string[]; stop(): void }
  trial(): { state: string; reason: string | null } | undefined
  dispose(): Promise<void>
}

/** Adds a migration to a build, as a newer version would bring one. */
export function addMigration(output: string): void {
  const files = readdirSync(join(output, 'server'), { recursive: true, encoding: 'utf8' })
  const sql = 'CREATE TABLE of_the_new_version (n INTEGER) STRICT; INSERT INTO of_the_new_version VALUES (1);'
  let found = 0
  for (const name of files.filter((file) => file.endsWith('.mjs'))) {
    const path = join(output, 'server', name)
    const text = readFileSync(path, 'utf8')
    // The list is in the build as `["0001_kernel.sql", "…"]`, in order.
    const at = /\[\s*"0001_kernel\.sql",/.exec(text)
    if (!at) continue
    found++
    writeFileSync(
      path,
      `${text.slice(0, at.index)}["9999_newer.sql", ${JSON.stringify(sql)}], ${text.slice(at.index)}`,
    )
  }
  if (found === 0) throw new Error('The list of migrations is not where it was.')
}

/** Makes of a build one that migrates as every start does, and ends before it is ready. */
export function endAfterMigration(output: string): void {
  const entry = join(output, 'server/index.mjs')
  renameSync(entry, join(output, 'server/index-of-the-build.mjs'))
  writeFileSync(
    entry,
    `import { readdirSync } from 'node:fs'
import { join } from 'node:path'
const folder = join(process.env.PORTREEVE_DATA_DIR, 'backups')
const hasMigrated = () => {
  try { return readdirSync(folder).some((name) => name.startsWith('before-migration-')) } catch { return false }
}
setInterval(() => { if (hasMigrated()) process.exit(3) }, 1)
await import('./index-of-the-build.mjs')
`,
  )
}

/** Ends every process that runs this program, as a power cut does: the server, and the command that upgrades. */
function killAll(program: string, cache: string): void {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const [called = '', ...rest] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
      const is_ours = called === program || called.startsWith(cache) || rest[0]?.startsWith(cache)
      if (is_ours) process.kill(Number(pid), 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
}

export async function createUpgradeStage(): Promise<UpgradeStage> {
  const folder = mkdtempSync(join(tmpdir(), 'ptr-up-'))
  const [program, data, cache] = ['bin/portreeve', 'data', 'cache'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  const [port = 0, http = 0, https = 0] = await freePorts(3)
  const url = `http://127.0.0.1:${port}`
  const env: Record<string, string> = {
    PATH: process.env.PATH!,
    HOME: folder,
    HOST: '127.0.0.1',
    PORT: String(port),
    PORTREEVE_CACHE_DIR: cache,
    PORTREEVE_DATA_DIR: data,
    PORTREEVE_HTTP_PORT: String(http),
    PORTREEVE_HTTPS_PORT: String(https),
    PORTREEVE_BASE_DOMAIN: 'apps.test',
    PORTREEVE_ADMIN_PASSWORD: 'correct horse battery staple',
    ...(process.env.DOCKER_HOST ? { DOCKER_HOST: process.env.DOCKER_HOST } : {}),
  }
  let supervisor: ChildProcess | undefined
  const end = async () => {
    if (!supervisor || supervisor.exitCode !== null) return
    const ended = new Promise((resolve) => supervisor!.once('exit', resolve))
    supervisor.kill('SIGTERM')
    await ended
  }
  const removeEdges = () => {
    for (const id of docker('ps', '-aq', '--filter', 'label=portreeve.edge').split('\n').filter(Boolean))
      if (docker('inspect', id, '--format', '{{json .Mounts}}').includes(data)) docker('rm', '-f', id)
  }
  const ready = () =>
    eventually(
      'Readiness',
      async () => ((await fetch(`${url}/readyz`)).status === 200 ? true : undefined),
      LIMIT_MS,
    ).then(() => undefined)
  const run: UpgradeStage['run'] = (...args) =>
    new Promise((resolve) => {
      const child = spawn(program, args, { env })
      let output = ''
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk: Buffer) => {
          output += chunk.toString()
        })
      child.on('close', (code) => resolve({ code, output }))
    })
  return {
    folder,
    program,
    data,
    run,
    ready,
    async release(version, change) {
      const output = join(folder, `output-${version}`)
      cpSync(join(ROOT, '.output'), output, { recursive: true })
      change(output)
      const place = join(folder, version)
      mkdirSync(place)
      const target = join(place, 'portreeve')
      await writeBinary({ output, target, version, work: join(folder, 'work'), level: 1 })
      const digest = createHash('sha256').update(readFileSync(target)).digest('hex')
      writeFileSync(`${target}.sha256`, `${digest}  portreeve\n`)
      rmSync(output, { recursive: true })
      return place
    },
    async install(place) {
      await end()
      removeEdges()
      for (const name of ['bin', 'data', 'supervisor'])
        rmSync(join(folder, name), { recursive: true, force: true })
      mkdirSync(join(folder, 'bin'))
      copyFileSync(join(place, 'portreeve'), program)
      // What install.sh uses where there is no systemd: it starts again whatever stands in the place.
      const argv = [
        join(ROOT, 'scripts/shell/supervise.sh'),
        join(folder, 'supervisor'),
        'portreeve',
        program,
        'serve',
      ]
      supervisor = spawn('bash', argv, { env, stdio: 'ignore' })
      await ready()
    },
    version: async () => JSON.parse((await run('--build')).output).version as string,
    database() {
      const db = new Database(join(data, 'portreeve.db'), { readonly: true })
      try {
        return {
          schema: db.pragma('user_version', { simple: true }) as number,
          projects: db.prepare('SELECT name FROM projects ORDER BY name').pluck().all() as string[],
        }
      } finally {
        db.close()
      }
    },
    killAt(is_due) {
      const changes: string[] = []
      let is_done = false
      const watchers: FSWatcher[] = []
      const stop = () => {
        is_done = true
        for (const one of watchers) one.close()
      }
      for (const at of [join(folder, 'bin'), data, join(data, 'upgrade'), join(data, 'backups')]) {
        mkdirSync(at, { recursive: true, mode: 0o700 })
        watchers.push(
          watch(at, (kind, name) => {
            // Only what an upgrade writes: not the journal of the database that serves.
            if (
              is_done ||
              !/trial|portreeve(\.|$)(new|old|back|db\.back|old\.partial)?$|before-upgrade/.test(name ?? '')
            )
              return
            const change = `${kind} ${basename(at)}/${name}`
            if (changes.at(-1) === change && kind === 'change') return
            changes.push(change)
            if (!is_due(change, changes.length)) return
            stop()
            killAll(program, cache)
          }),
        )
      }
      return { changes, stop }
    },
    trial() {
      try {
        return JSON.parse(readFileSync(join(data, 'upgrade/trial.json'), 'utf8'))
      } catch {
        return undefined
      }
    },
    async dispose() {
      await end()
      removeEdges()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
