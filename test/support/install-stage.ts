import { type SpawnSyncReturns, execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { ADMIN, eventually, freePorts, removeInstallation } from './portreeve.ts'
import { ROOT } from './routes.ts'
import { addMigration } from './upgrade-stage.ts'

/** A checkout that `install.sh` installs from, and where it is pulled from. */
export interface InstallStage {
  checkout: string
  /** Folder of the data: `.data` of the checkout, as for everybody. */
  data: string
  edge_port: number
  /** Runs a shell line in the checkout, as root in a terminal: its code and all that it printed. */
  shell(line: string): { code: number | null; output: string }
  /** Publishes a commit that anybody who pulls gets. */
  publish(files: Record<string, string>, message: string): void
  call(method: string, path: string, body?: unknown): Promise<{ status: number; body: any }>
  /** Whether the database has a table. */
  hasTable(name: string): boolean
  dispose(): void
}

/**
 * What stands for the build: the server that was built once, in place of half a minute of bundling.
 * The file says whether it has the migration that the next version brings.
 */
const BUILD = `const { cpSync, readFileSync, realpathSync, rmSync, utimesSync } = require('node:fs')
const version = readFileSync('server/version-of-the-test', 'utf8').trim()
const place = process.env.OUTPUT_FOLDER
rmSync(place, { recursive: true, force: true })
cpSync(realpathSync(process.env.BUILDS_OF_THE_TEST + '/' + version), place, { recursive: true })
const now = new Date()
utimesSync(place + '/server/index.mjs', now, now)
`
/** Where install.sh puts its command. */
const PROGRAMS = '/usr/local/bin'
const LONG_AGO = new Date('2020-01-01T00:00:00Z')

export async function createInstallStage(): Promise<InstallStage> {
  const folder = mkdtempSync(join(tmpdir(), 'ptr-install-'))
  const [origin, checkout, builds] = ['origin', 'checkout', 'builds'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  const [port = 0, http = 0, https = 0] = await freePorts(3)
  const url = `http://127.0.0.1:${port}`
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', origin, '-c', 'user.name=t', '-c', 'user.email=t@t.test', ...args], {
      encoding: 'utf8',
    })

  mkdirSync(origin)
  git('init', '--quiet', '--initial-branch=main')
  const tracked = execFileSync('git', ['-C', ROOT, 'ls-files', '-z'], { encoding: 'utf8' }).split('\0')
  for (const path of tracked.filter((one) => one !== '' && existsSync(join(ROOT, one))))
    cpSync(join(ROOT, path), join(origin, path))
  const manifest = JSON.parse(readFileSync(join(origin, 'package.json'), 'utf8'))
  manifest.scripts.build = 'node build-of-the-test.cjs'
  const publish: InstallStage['publish'] = (files, message) => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(origin, path)), { recursive: true })
      writeFileSync(join(origin, path), text)
    }
    git('add', '--all')
    git('commit', '--quiet', '--message', message)
  }
  publish(
    {
      'package.json': JSON.stringify(manifest),
      'build-of-the-test.cjs': BUILD,
      'server/version-of-the-test': 'before\n',
    },
    'before',
  )
  mkdirSync(builds)
  symlinkSync(join(ROOT, '.output'), join(builds, 'before'))
  cpSync(join(ROOT, '.output'), join(builds, 'after'), { recursive: true })
  addMigration(join(builds, 'after'))

  execFileSync('git', ['clone', '--quiet', origin, checkout])
  // Links to each package: whatever a mistake would remove is a link.
  mkdirSync(join(checkout, 'node_modules'))
  for (const name of readdirSync(join(ROOT, 'node_modules')))
    symlinkSync(join(ROOT, 'node_modules', name), join(checkout, 'node_modules', name))
  utimesSync(join(checkout, 'package-lock.json'), LONG_AGO, LONG_AGO)

  // The folder of programs of this machine is covered, so that its own command stays what it is; so
  // is what tells of a systemd, whose units belong to the machine.
  const [shown, real] = [join(folder, 'bin'), join(folder, 'bin-of-the-machine')]
  mkdirSync(shown)
  mkdirSync(real)
  for (const name of readdirSync(PROGRAMS)) {
    const path = realpathSync(join(PROGRAMS, name))
    symlinkSync(path.startsWith(`${PROGRAMS}/`) ? path.replace(PROGRAMS, real) : path, join(shown, name))
  }
  const covered = [
    `mount --bind ${PROGRAMS} ${real}`,
    `mount --bind ${shown} ${PROGRAMS}`,
    '{ [ ! -d /run/systemd/system ] || mount -t tmpfs tmpfs /run/systemd; }',
  ]
  const env = {
    PATH: process.env.PATH!,
    HOME: folder,
    HOST: '127.0.0.1',
    PORT: String(port),
    PORTREEVE_HTTP_PORT: String(http),
    PORTREEVE_HTTPS_PORT: String(https),
    PORTREEVE_BASE_DOMAIN: 'apps.test',
    PORTREEVE_ADMIN_EMAIL: ADMIN.email,
    PORTREEVE_ADMIN_PASSWORD: ADMIN.password,
    BUILDS_OF_THE_TEST: builds,
    ...(process.env.DOCKER_HOST ? { DOCKER_HOST: process.env.DOCKER_HOST } : {}),
  }
  const shell: InstallStage['shell'] = (line) => {
    const { status, stdout, stderr }: SpawnSyncReturns<string> = spawnSync(
      'unshare',
      ['--mount', 'bash', '-c', `set -e; ${covered.join('; ')}; cd ${checkout}; ${line}`],
      { env, encoding: 'utf8', timeout: 300_000 },
    )
    return { code: status, output: `${stdout}${stderr}` }
  }

  let token = ''
  const request = async (method: string, path: string, body?: unknown) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        'content-type': 'application/json',
        connection: 'close',
        ...(token ? { authorization: `Bearer ${token}` } : {}),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: (await response.json()) as any }
  }
  return {
    checkout,
    data: join(checkout, '.data'),
    edge_port: http,
    shell,
    publish,
    async call(method, path, body) {
      if (token === '')
        token = (await eventually('Login', () => request('POST', '/api/auth/login', ADMIN))).body.data.token
      return request(method, path, body)
    },
    hasTable(name) {
      const db = new Database(join(checkout, '.data/portreeve.db'), { readonly: true })
      try {
        return db.prepare(`SELECT 1 FROM sqlite_master WHERE name = ?`).get(name) !== undefined
      } finally {
        db.close()
      }
    },
    dispose() {
      shell('./install.sh --stop')
      removeInstallation(join(checkout, '.data'))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
