import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

const root = join(import.meta.dirname, '..', '..')
let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portreeve-shell-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

/**
 * Runs bash with our shell functions loaded; the values are `$1`, `$2`, …, never part of the
 * script's text.
 */
function bash(script: string, args: string[] = [], env: Record<string, string> = {}): string {
  const sources = ['settings', 'service', 'engine']
    .map((name) => `. "${root}/scripts/shell/${name}.sh"`)
    .join('\n')
  return execFileSync(
    'bash',
    ['--norc', '-c', `set -euo pipefail\nROOT="${root}"\n${sources}\n${script}`, 'bash', ...args],
    { encoding: 'utf8', env: { PATH: process.env.PATH ?? '', ...env } },
  )
}

describe('the settings of an installation', () => {
  const VALUES = [
    'plain',
    'two words',
    `quotes ' and "`,
    'dollar $HOME `id` $(id)',
    'back\\slash \\" \\$',
    '#hash=%d;&|',
    'ünï',
  ]
  test.each(VALUES)('%s comes back unchanged from the file', (value) => {
    const file = join(folder, 'settings')
    bash('settings_store "$1"', [file], {
      PORTREEVE_ADMIN_PASSWORD: value,
      PORT: '9100',
      SECRET_OF_SOMEBODY: 'x',
    })
    expect(
      bash(
        'settings_load "$1"; printf "%s|%s|%s" "$PORTREEVE_ADMIN_PASSWORD" "$PORT" "${SECRET_OF_SOMEBODY-none}"',
        [file],
      ),
    ).toBe(`${value}|9100|none`)
  })
  test('only root can read the file, and an unchanged one is not written again', () => {
    const file = join(folder, 'settings')
    expect(bash('settings_store "$1" && echo written', [file], { PORT: '9100' })).toBe('written\n')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(bash('settings_store "$1" || echo same', [file], { PORT: '9100' })).toBe('same\n')
    expect(bash('settings_store "$1" && echo written', [file], { PORT: '9101' })).toBe('written\n')
  })
  test('stay as they are, with a sentence, where the disk has no room for new ones', () => {
    const file = join(folder, 'settings')
    bash('settings_store "$1"', [file], { PORT: '9100' })
    // The kernel takes one block and no more, as a full disk does.
    const script = `
      fail() { echo "$1"; exit 1; }
      trap '' XFSZ
      ulimit -f 1
      if settings_store "$1" 2> /dev/null; then echo stored; else echo same; fi`
    expect(() => bash(script, [file], { PORT: '9101', PORTREEVE_TRUSTED_PROXIES: 'x'.repeat(9000) })).toThrow(
      expect.objectContaining({ stdout: `The settings cannot be written to ${file}; is the disk full?\n` }),
    )
    expect(readFileSync(file, 'utf8')).toBe('PORT="9100"\n')
  })
  test('an empty value takes a stored setting away', () => {
    const file = join(folder, 'settings')
    bash('settings_store "$1"', [file], { PORT: '9100', HOST: '127.0.0.1' })
    bash('settings_load "$1"; settings_store "$1"', [file], { HOST: '' })
    expect(readFileSync(file, 'utf8')).toBe('PORT="9100"\n')
  })
  test('settings that Portreeve does not start with are taken back', () => {
    const file = join(folder, 'settings')
    bash('settings_store "$1"', [file], { PORT: '9100' })
    bash('settings_store "$1"; settings_take_back "$1"', [file], { PORT: '9100', HOST: 'wrong' })
    expect(readFileSync(file, 'utf8')).toBe('PORT="9100"\n')
  })
  test('and a server that ran goes on with those from before; the sentence says so, and where the log is', () => {
    const file = join(folder, 'settings')
    const script = `
      . "$ROOT/scripts/shell/run.sh"
      SETTINGS=$1 RUN_DIR=$2 restart=yes running=yes
      has_systemd() { false; }
      is_running() { [ "$running" = yes ]; }
      supervised_start() { echo "started on $PORT with \${HOST-no host}" >> "$RUN_DIR/portreeve.log"; }
      supervised_stop() { echo stopped >> "$RUN_DIR/portreeve.log"; }
      changed() { :; }
      fail() { echo "fail: $1"; exit 1; }
      await_ready() { [ "\${HOST-}" != wrong ]; }
      settings_store "$SETTINGS"
      start_portreeve`
    bash('settings_store "$1"', [file], { PORT: '9100' })
    let said = ''
    try {
      bash(script, [file, folder], { PORT: '9200', HOST: 'wrong' })
    } catch (error) {
      said = (error as { stdout: string }).stdout
    }
    expect(said).toContain('so they were taken back: it runs as before.')
    expect(said).toContain(`all of them in ${folder}/portreeve.log.`)
    expect(readFileSync(file, 'utf8')).toBe('PORT="9100"\n')
    const lines = readFileSync(join(folder, 'portreeve.log'), 'utf8').trim().split('\n')
    expect(lines.filter((line) => line.startsWith('started'))).toEqual([
      'started on 9200 with wrong',
      'started on 9100 with no host',
    ])
  })
  test('the data folder is remembered in the checkout, and forgotten when it is the default one again', () => {
    const file = join(folder, 'remembered')
    const remember = (data: string) =>
      bash('data_dir_remember "$1" "$2" /checkout/.data; data_dir_recall "$1"', [file, data])
    expect(remember('/srv/port reeve')).toBe('/srv/port reeve\n')
    expect(remember('/checkout/.data')).toBe('')
  })
  test('that take more than a line are refused by name: no reader of the file would find them again', () => {
    const script = 'fail() { echo "$1"; exit 1; }; require_single_lines'
    expect(() => bash(script, [], { PORTREEVE_SECRET_KEY: 'first\nsecond', PORT: '9100' })).toThrow(
      expect.objectContaining({ stdout: 'PORTREEVE_SECRET_KEY must be one line.\n' }),
    )
    bash(script, [], { PORTREEVE_SECRET_KEY: 'first', SOMETHING_ELSE: 'first\nsecond' })
  })
  test('and is not forgotten where the disk is full: the next call would make another installation', () => {
    const file = join(folder, 'remembered')
    bash('data_dir_remember "$1" /srv/first /checkout/.data', [file])
    const script = `trap '' XFSZ; ulimit -f 0; data_dir_remember "$1" /srv/second /checkout/.data 2> /dev/null`
    expect(() => bash(script, [file])).toThrow()
    expect(bash('data_dir_recall "$1"', [file])).toBe('/srv/first\n')
  })
  test('what a call says wins over what was stored', () => {
    const file = join(folder, 'settings')
    bash('settings_store "$1"', [file], { PORT: '9100', HOST: '127.0.0.1' })
    expect(bash('settings_load "$1"; echo "$PORT $HOST"', [file], { PORT: '9200' })).toBe('9200 127.0.0.1\n')
  })
})

describe('a program under the supervisor', () => {
  const supervise = (...command: string[]): void => {
    spawn('bash', [join(root, 'scripts/shell/supervise.sh'), folder, 'app', ...command], {
      stdio: 'ignore',
      detached: true,
    }).unref()
  }
  const pid = (): string => bash('supervised_pid "$1" app || echo none', [folder]).trim()
  afterEach(() => {
    bash('supervised_stop "$1" app', [folder])
  })

  test('is started again after it ended, and each start is in the log', async () => {
    supervise('sh', '-c', 'echo started; exit 3')
    await vi.waitFor(
      () => {
        expect(
          readFileSync(join(folder, 'app.log'), 'utf8').match(/started\n/g)?.length ?? 0,
        ).toBeGreaterThanOrEqual(2)
      },
      { timeout: 60_000, interval: 50 },
    )
    expect(readFileSync(join(folder, 'app.log'), 'utf8')).toContain(
      'app ended with code 3; starting it again in 1 s',
    )
  })
  test('that asks to be started again, as an upgrade does, never waits longer for it', async () => {
    supervise('sh', '-c', 'echo started; exit 75')
    const log = () => readFileSync(join(folder, 'app.log'), 'utf8')
    await vi.waitFor(() => expect(log().match(/ended with code 75/g)!.length).toBeGreaterThanOrEqual(3), {
      timeout: 60_000,
      interval: 50,
    })
    expect(log()).not.toMatch(/starting it again in ([2-9]|\d\d)/)
  })
  test('is not started where nobody could stop it, since the disk has no room for the file of its supervisor', () => {
    symlinkSync('/dev/full', join(folder, 'app.pid'))
    const argv = [join(root, 'scripts/shell/supervise.sh'), folder, 'app', 'touch', join(folder, 'started')]
    expect(spawnSync('bash', argv, { stdio: 'ignore', timeout: 30_000 }).status).toBe(1)
    expect(existsSync(join(folder, 'started'))).toBe(false)
    rmSync(join(folder, 'app.pid'))
  })
  test('ends with its supervisor, which leaves no process file', async () => {
    supervise('sh', '-c', `echo $$ > ${join(folder, 'child')}; exec sleep 600`)
    await vi.waitFor(
      () => {
        expect(existsSync(join(folder, 'child')) && readFileSync(join(folder, 'child'), 'utf8')).toMatch(
          /\d+\n/,
        )
      },
      { timeout: 60_000, interval: 50 },
    )
    expect(pid()).toMatch(/^\d+$/)
    const child = readFileSync(join(folder, 'child'), 'utf8').trim()
    bash('supervised_stop "$1" app', [folder])
    expect(existsSync(`/proc/${child}`)).toBe(false)
    expect(pid()).toBe('none')
    expect(existsSync(join(folder, 'app.pid'))).toBe(false)
  })
  test('writes nothing more once it is said to have stopped, so that its folder can be removed', async () => {
    const slow = join(folder, 'path')
    mkdirSync(slow)
    writeFileSync(join(slow, 'date'), '#!/bin/sh\nsleep 1\nexec /bin/date "$@"\n', { mode: 0o755 })
    spawn('bash', [join(root, 'scripts/shell/supervise.sh'), folder, 'app', 'sleep', '600'], {
      stdio: 'ignore',
      detached: true,
      env: { PATH: `${slow}:${process.env.PATH}` },
    }).unref()
    await vi.waitFor(() => expect(pid()).toMatch(/^\d+$/), { timeout: 60_000, interval: 50 })
    bash('supervised_stop "$1" app', [folder])
    expect(readFileSync(join(folder, 'app.log'), 'utf8')).toMatch(/ supervisor: app was stopped\n$/)
  })
  test('a process file of an earlier boot is not mistaken for a running supervisor', () => {
    writeFileSync(join(folder, 'app.pid'), String(process.pid))
    expect(pid()).toBe('none')
  })
  test('its log stays below the limit while it writes on', async () => {
    supervise('sh', '-c', 'head -c 12000000 /dev/zero | tr "\\0" x; echo; echo last line; exec sleep 600')
    await vi.waitFor(
      () => {
        expect(existsSync(join(folder, 'app.log.1'))).toBe(true)
      },
      { timeout: 60_000, interval: 100 },
    )
    await vi.waitFor(
      () => {
        expect(statSync(join(folder, 'app.log')).size).toBeLessThan(1000)
      },
      { timeout: 60_000, interval: 50 },
    )
    expect(readFileSync(join(folder, 'app.log.1'), 'utf8')).toContain('last line')
  })
})

describe('the server without systemd', () => {
  test('gets the stored settings and nothing else, and none of them as an argument that every user can read', () => {
    const at = (path: string) => join(folder, 'a b', path)
    for (const path of ['scripts/shell', 'node_modules/.bin', 'path'])
      mkdirSync(at(path), { recursive: true })
    cpSync(join(root, 'scripts/shell/run-server.sh'), at('scripts/shell/run-server.sh'))
    const write = (path: string, text: string) => writeFileSync(at(path), text, { mode: 0o755 })
    write('node_modules/.bin/node', '#!/bin/sh\ncat /proc/$$/environ > "$HOME/environment"\n')
    write('path/env', '#!/bin/sh\nprintf "%s\\n" "$@" > "$HOME/arguments"\nexec /usr/bin/env "$@"\n')
    const secret = `a "b" $c \`d\` \\e 'f' %g`
    bash('settings_store "$1"', [at('settings')], { PORTREEVE_ADMIN_PASSWORD: secret, HOST: '::1' })
    execFileSync('bash', [at('scripts/shell/run-server.sh'), at('settings')], {
      env: { PATH: `${at('path')}:${process.env.PATH}`, HOME: at('.'), OF_SOMEBODY: 'x' },
    })
    const environment = readFileSync(at('environment'), 'utf8').split('\0').filter(Boolean).sort()
    expect(environment.filter((pair) => !/^(_|PATH|SHLVL)=/.test(pair))).toEqual([
      `HOME=${at('.')}`,
      'HOST=::1',
      'MALLOC_ARENA_MAX=1',
      'MALLOC_TRIM_THRESHOLD_=131072',
      'NODE_ENV=production',
      'PORT=9000',
      `PORTREEVE_ADMIN_PASSWORD=${secret}`,
    ])
    expect(existsSync(at('arguments')) && readFileSync(at('arguments'), 'utf8').includes(secret)).toBe(false)
  })
})

describe('the systemd unit', () => {
  test('starts the pinned Node on the built server with the stored settings, also in a folder with a blank and a percent sign', () => {
    const unit = bash('render_unit "$1" "$2"', ['/opt/my 100% port', '/var/lib/port reeve'])
    expect(unit).toMatch(
      /^ExecStart="\/opt\/my 100%% port\/node_modules\/\.bin\/node"( --[\w=-]+)* "\/opt\/my 100%% port\/\.output\/server\/index\.mjs"$/m,
    )
    expect(unit).toContain('WorkingDirectory=/opt/my 100%% port\n')
    expect(unit).toContain('EnvironmentFile=/var/lib/port reeve/portreeve.env\n')
    expect(unit).toContain('ReadWritePaths="/var/lib/port reeve" /sys/fs/cgroup /run\n')
  })
})

describe('install.sh', () => {
  const install = (...args: string[]): { code: number; said: string } => {
    try {
      return {
        code: 0,
        said: execFileSync('bash', [join(root, 'install.sh'), ...args], {
          encoding: 'utf8',
          stdio: 'pipe',
          env: { PATH: process.env.PATH ?? '' },
        }),
      }
    } catch (error) {
      const { status, stderr } = error as { status: number; stderr: string }
      return { code: status, said: stderr }
    }
  }
  test.each([
    [['--nope'], 2, 'There is no option --nope.'],
    [['--port'], 2, '--port needs a value.'],
    [['--stop', '--foreground'], 2, '--stop and --foreground exclude each other.'],
  ])('%j is refused with a sentence', (args, code, sentence) => {
    expect(install(...args)).toEqual({ code, said: `install.sh: ${sentence}\nTry --help.\n` })
  })
  test('explains itself', () => {
    expect(install('--help').said).toContain('--foreground')
  })
  test.runIf(process.getuid?.() === 0).each(['0', '65536', 'http', '90 00'])(
    'the port %s is refused before anything is changed',
    (port) => {
      const { code, said } = install('--data-dir', join(folder, 'data'), '--port', port)
      expect(code).toBe(1)
      expect(said).toMatch(/^install\.sh: PORT must be a port number from 1 to 65535/)
      expect(existsSync(join(folder, 'data'))).toBe(false)
    },
  )
  test.runIf(process.getuid?.() === 0)('nor is a port for HTTPS taken that is none', () => {
    expect(
      spawnSync('bash', [join(root, 'install.sh'), '--data-dir', join(folder, 'data')], {
        encoding: 'utf8',
        env: { PATH: process.env.PATH ?? '', PORTREEVE_HTTPS_PORT: 'https' },
      }).stderr,
    ).toBe('install.sh: PORTREEVE_HTTPS_PORT must be a port number from 1 to 65535, not "https".\n')
  })
  test.runIf(process.getuid?.() === 0)(
    'an installation that does not run says so, and stopping it changes nothing',
    () => {
      const port = ['--data-dir', join(folder, 'data'), '--port', '59']
      expect(install('--status', ...port)).toMatchObject({ code: 3 })
      expect(install('--stop', ...port)).toEqual({
        code: 0,
        said: 'Portreeve is not running; nothing was changed.\n',
      })
    },
  )
})

describe.runIf(process.getuid?.() === 0)('an installation whose data folder was chosen', () => {
  /** A checkout with an installation elsewhere, which answers at a port of its own. */
  async function installed(): Promise<{
    run: (args: string[], env?: Record<string, string>) => Promise<string>
    url: string
    close: () => void
  }> {
    const server = createServer((_request, response) => response.end()).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const [checkout, data] = [join(folder, 'checkout'), join(folder, 'the data')]
    mkdirSync(data)
    cpSync(join(root, 'install.sh'), join(checkout, 'install.sh'))
    cpSync(join(root, 'scripts/shell'), join(checkout, 'scripts/shell'), { recursive: true })
    bash(
      'settings_store "$1"; data_dir_remember "$2" "$3" "$4"',
      [join(data, 'portreeve.env'), join(checkout, '.data-dir'), data, join(checkout, '.data')],
      { PORT: String(port), HOST: '127.0.0.1' },
    )
    const run = async (args: string[], env: Record<string, string> = {}) =>
      (
        await promisify(execFile)('bash', [join(checkout, 'install.sh'), ...args], {
          cwd: '/',
          env: { PATH: process.env.PATH ?? '', ...env },
        }).catch((error: { stdout: string }) => error)
      ).stdout
    return { run, url: `http://127.0.0.1:${port}`, close: () => server.close() }
  }
  test('is found by a call that does not name the folder', async () => {
    const { run, url, close } = await installed()
    expect(await run(['--status'])).toBe(`Portreeve is ready at ${url}.\n`)
    close()
  })
  test('is not meant by a call that names another folder, or the default one by an empty value', async () => {
    const { run, url, close } = await installed()
    for (const [args, env] of [
      [['--data-dir', join(folder, 'another')], {}],
      [[], { PORTREEVE_DATA_DIR: '' }],
    ] as const) {
      expect(await run(['--status', '--port', '59', ...args], env)).toBe('Portreeve is not running.\n')
      expect(await run(['--status', ...args], env)).not.toContain(url)
    }
    close()
  })
})

describe('the command on the PATH', () => {
  /** A checkout whose Node prints what it was called with. */
  const checkout = (): string => {
    const directory = join(folder, 'my checkout')
    mkdirSync(join(directory, 'node_modules/.bin'), { recursive: true })
    cpSync(join(root, 'scripts/shell'), join(directory, 'scripts/shell'), { recursive: true })
    writeFileSync(
      join(directory, 'node_modules/.bin/node'),
      '#!/bin/bash\nprintf "%s|" "$@" "$PORTREEVE_DATA_DIR" "$PORT"\n',
      { mode: 0o755 },
    )
    return directory
  }
  const install = (directory: string, file: string) =>
    bash(
      '. "$ROOT/scripts/shell/steps.sh"; say() { echo "$*"; }; changed() { say "$1"; }; ROOT=$1 SETTINGS=$2; install_command_line "$3"',
      [directory, join(folder, 'the data', 'portreeve.env'), file],
    )
  test('knows the checkout and the settings of the installation, and is written once', () => {
    const file = join(folder, 'bin/portreeve')
    const directory = checkout()
    mkdirSync(join(folder, 'the data'))
    bash('settings_store "$1"', [join(folder, 'the data', 'portreeve.env')], { PORT: '9100' })
    expect(install(directory, file)).toContain('on the PATH')
    expect(install(directory, file)).toBe('')
    const said = execFileSync(file, ['rotate-key', '--wait'], {
      encoding: 'utf8',
      cwd: folder,
      env: { PATH: process.env.PATH ?? '' },
    })
    expect(said).toBe(
      `${directory}/.output/server/portreeve.mjs|rotate-key|--wait|${join(folder, 'the data')}|9100|`,
    )
    expect(
      execFileSync(file, ['--help'], {
        encoding: 'utf8',
        env: { PATH: process.env.PATH ?? '', PORTREEVE_DATA_DIR: '/elsewhere' },
      }),
    ).toContain('|/elsewhere|9100|')
  })
  test('of somebody else is left alone', () => {
    const file = join(folder, 'portreeve')
    writeFileSync(file, '#!/bin/sh\necho theirs\n', { mode: 0o755 })
    expect(install(checkout(), file)).toContain('is another program')
    expect(readFileSync(file, 'utf8')).toContain('theirs')
  })
})

describe('the policy that keeps packages from starting services', () => {
  const install = (end: string) =>
    bash(
      `. "$ROOT/scripts/shell/steps.sh"
      ENGINE_POLICY=$1/policy ENGINE_SETTINGS=$1/daemon.json
      has_systemd() { false; }
      engine_answers() { false; }
      command() { [ "$2" = apt-get ]; }
      say() { :; }
      changed() { :; }
      fail() { exit 1; }
      install_packages() { sh "$ENGINE_POLICY" || echo "policy: $?"; ${end}; }
      start_engine_of_machine() { true; }
      trap engine_policy_remove EXIT
      ensure_engine_runs`,
      [folder],
    )
  const policy = () => join(folder, 'policy')
  test('goes with the call that needed it, also with one that is broken off', () => {
    expect(install('true')).toBe('policy: 101\n')
    expect(existsSync(policy())).toBe(false)
    expect(() => install('kill -TERM $$; sleep 1')).toThrow()
    expect(existsSync(policy())).toBe(false)
  })
  test('is taken away by the next call where one was killed, and one of somebody else stays', () => {
    expect(() => install('kill -9 $$')).toThrow()
    expect(existsSync(policy())).toBe(true)
    bash(
      '. "$ROOT/scripts/shell/steps.sh"; ENGINE_POLICY=$1; engine_answers() { true; }; ensure_engine_runs',
      [policy()],
    )
    expect(existsSync(policy())).toBe(false)
    writeFileSync(policy(), 'exit 0\n')
    expect(install('true')).toBe('')
    expect(readFileSync(policy(), 'utf8')).toBe('exit 0\n')
  })
})

describe('base images that cannot be made', () => {
  const provide = (is_ready: boolean) => {
    const stubs = [
      'say() { echo "$*"; }',
      'fail() { echo "failed: $*"; exit 0; }',
      'engine_client() { echo client; }',
      'client() { echo true; }',
      'edge_image() { echo haproxy; }',
      'node() { case $* in *--missing*) echo node:24-slim ;; *) return 1 ;; esac; }',
      `is_ready() { ${is_ready}; }`,
      'show_access() { echo "Portreeve is ready"; }',
    ].join('\n')
    return bash(`. "$ROOT/scripts/shell/steps.sh"\n${stubs}\nprovide_base_images`)
  }
  test('leave nobody without the address and the password of what runs', () => {
    expect(provide(true)).toMatch(/Portreeve is ready\nfailed: Not all base images/)
    expect(provide(false)).not.toContain('is ready')
  })
})

describe('what an upgrade of a checkout replaces', () => {
  const at = (path: string) => join(folder, path)
  const write = (path: string, text: string) => {
    mkdirSync(join(at(path), '..'), { recursive: true })
    writeFileSync(at(path), text)
  }
  /** Calls a step in a checkout whose `npm` begins as the real one does, by taking away what was there. */
  const step = (name: string, how: 'ends' | 'fails' | 'is killed') => {
    const end = { ends: 'exit 0', fails: 'exit 1', 'is killed': 'kill -9 $PPID' }[how]
    write(
      'bin/npm',
      `#!/bin/bash
if [ "$1" = ci ]; then place=node_modules file=.package-lock.json; else place=\${OUTPUT_FOLDER:-.output} file=server/index.mjs; fi
rm -rf "$place"; mkdir -p "$(dirname "$place/$file")"; echo new > "$place/$file"
mkdir -p "$place/.bin"; ln -s "$(command -v node)" "$place/.bin/node"
${end}
`,
    )
    chmodSync(at('bin/npm'), 0o755)
    try {
      return bash(
        `. "$ROOT/scripts/shell/steps.sh"; ROOT=$1; cd "$ROOT"; restart=no
fail() { echo "failed: $*"; exit 1; }; say() { :; }; changed() { echo "$*"; }
BUILT_FROM=(server); ${name}`,
        [folder],
        { PATH: `${at('bin')}:${process.env.PATH}`, HOME: folder },
      )
    } catch (error) {
      return (error as { stdout: string }).stdout
    }
  }
  const found = (path: string) => readFileSync(at(path), 'utf8').trim()
  beforeEach(() => {
    write('.output/server/index.mjs', 'old')
    write('node_modules/.package-lock.json', 'old')
    const long_ago = new Date('2020-01-01T00:00:00Z')
    for (const path of ['.output/server/index.mjs', 'node_modules/.package-lock.json'])
      utimesSync(at(path), long_ago, long_ago)
    for (const path of ['server/a.ts', 'package.json', 'package-lock.json']) write(path, '{}')
  })
  test.each(['fails', 'is killed'] as const)('stays whole where what makes the new %s', (how) => {
    step('build_server', how)
    step('install_node_packages', how)
    expect([found('.output/server/index.mjs'), found('node_modules/.package-lock.json')]).toEqual([
      'old',
      'old',
    ])
    // The next call begins anew.
    expect(step('build_server', 'ends')).toContain('Built Portreeve.')
    expect(step('install_node_packages', 'ends')).toContain('Installed the npm packages.')
    expect([found('.output/server/index.mjs'), found('node_modules/.package-lock.json')]).toEqual([
      'new',
      'new',
    ])
    expect(readdirSync(folder).toSorted()).toEqual(
      ['.output', 'bin', 'node_modules', 'package-lock.json', 'package.json', 'server'].toSorted(),
    )
  })
  test.each(['.output/server/index.mjs', 'node_modules/.package-lock.json', 'portreeve.env'])(
    'is started by the next call where one ended between putting %s in place and the start',
    (path) => {
      write('portreeve.env', 'PORT="9100"')
      const start = () =>
        bash(
          `. "$ROOT/scripts/shell/run.sh"; ROOT=$1 SETTINGS=$1/portreeve.env restart=no; cd "$ROOT"
has_systemd() { false; }; is_running() { true; }; count_restarts() { echo 0; }; await_ready() { true; }
start_supervised() { echo "restart=$restart"; }; start_portreeve`,
          [folder],
        )
      expect([start(), start()]).toEqual(['restart=no\n', 'restart=no\n'])
      const soon = new Date(Date.now() + 60_000)
      utimesSync(at(path), soon, soon)
      expect(start()).toBe('restart=yes\n')
    },
  )
})
