import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { run } from '#server/kernel/process'
import { ALLOCATOR } from '#server/start/process-arguments'
import { CommandError } from '../terminal.ts'

/** Where an installation lies. */
export interface Places {
  data: string
  /** The program itself, in a folder that the service may write to, so that an upgrade can go back. */
  program: string
  /** Beside the program: leads to the data that it serves. */
  data_link: string
  settings: string
  cache: string
}

const UNIT = '/etc/systemd/system/portreeve.service'
const NAME = 'portreeve'
const STOP_MS = 60_000
const LAST_LINES = '5'

/** Keeps the server running: systemd, or our own supervisor where there is none. */
export interface Service {
  is_running(): Promise<boolean>
  /** Starts it, or again with what is new; answers whether anything was done. */
  start(is_changed: boolean): Promise<boolean>
  stop(): Promise<void>
  remove(): Promise<void>
  /** How often it has ended by itself: since it was started by systemd, else ever. */
  ends(): Promise<number>
  /** The last lines that it wrote. */
  lastLines(): Promise<string>
}

const quoted = (text: string) => `"${text.replaceAll(/[\\"]/g, '\\$&').replaceAll('%', '%%')}"`

/**
 * The unit. Portreeve drives the engine, which amounts to root, so it runs as root; the unit takes away what it
 * does not need, and leaves it the cgroup tree, where it caps builds, and /run, where the firewall has its lock.
 */
export function renderUnit({ data, program, settings, cache }: Omit<Places, 'data_link'>): string {
  return `[Unit]
Description=Portreeve, application hosting
Wants=network-online.target
After=network-online.target docker.service
StartLimitIntervalSec=0

[Service]
Type=simple
Environment=NODE_ENV=production PORT=9000 ${Object.entries(ALLOCATOR)
    .map((pair) => pair.join('='))
    .join(' ')}
Environment=${quoted(`PORTREEVE_DATA_DIR=${data}`)} ${quoted(`PORTREEVE_CACHE_DIR=${cache}`)}
EnvironmentFile=${settings.replaceAll('%', '%%')}
ExecStart=${quoted(program)} serve
Restart=always
RestartSec=1
KillMode=mixed
TimeoutStopSec=40
UMask=0077
LimitNOFILE=65536
OOMScoreAdjust=-200
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths=${quoted(data)} ${quoted(dirname(program))} ${quoted(cache)} /sys/fs/cgroup /run
PrivateTmp=yes
ProtectHome=read-only
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native

[Install]
WantedBy=multi-user.target
`
}

/**
 * Throws when the unit of this machine is of another installation, also of one that `install.sh` made: there is one
 * name, and whoever took it would serve something empty in the place of what is there.
 */
export function requireOwnUnit(settings: string, unit = UNIT): void {
  const found = existsSync(unit) ? /^EnvironmentFile=(.+)$/m.exec(readFileSync(unit, 'utf8'))?.[1] : undefined
  const other = found?.replaceAll('%%', '%')
  if (other === undefined || other === settings) return
  throw new CommandError(
    `The unit portreeve.service is of the installation in ${dirname(other)}. Name that with --data-dir, or take it away first.`,
  )
}

async function systemctl(...words: string[]): Promise<boolean> {
  return (await run(['systemctl', ...words], { cwd: '/' })).exit_code === 0
}
const printed = async (...argv: string[]) => (await run(argv, { cwd: '/' })).stdout.trim()

function systemdService(places: Places): Service {
  const is_running = () => systemctl('is-active', '--quiet', NAME)
  return {
    is_running,
    async start(is_changed) {
      const unit = renderUnit(places)
      const is_new = !existsSync(UNIT) || readFileSync(UNIT, 'utf8') !== unit
      if (is_new) {
        writeFileSync(UNIT, unit)
        await systemctl('daemon-reload')
        await systemctl('enable', '--quiet', NAME)
      }
      if ((await is_running()) && !is_new && !is_changed) return false
      if (!(await systemctl('restart', NAME)))
        throw new CommandError('systemd could not start Portreeve; "journalctl -u portreeve" tells why.')
      return true
    },
    stop: async () => void (await systemctl('stop', NAME)),
    async remove() {
      await systemctl('disable', '--now', '--quiet', NAME)
      rmSync(UNIT, { force: true })
      await systemctl('daemon-reload')
    },
    ends: async () =>
      Number(await printed('systemctl', 'show', '--property', 'NRestarts', '--value', NAME)) || 0,
    // What the server wrote, without what systemd says about it.
    lastLines: () =>
      printed(
        'journalctl',
        `_SYSTEMD_UNIT=${NAME}.service`,
        '--output=cat',
        '--no-pager',
        `--lines=${LAST_LINES}`,
      ),
  }
}

/** Process id of the supervisor; a file that a killed one left names no process of ours. */
function supervisorOf(folder: string): number | undefined {
  try {
    const pid = Number(readFileSync(join(folder, `${NAME}.pid`), 'utf8'))
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(folder) ? pid : undefined
  } catch {
    return undefined
  }
}

function supervisedService(
  { data, program, cache }: Places,
  settings: () => Record<string, string>,
  shell: string,
): Service {
  const folder = join(data, 'supervisor')
  const log = join(folder, `${NAME}.log`)
  const logged = () => (existsSync(log) ? readFileSync(log, 'utf8') : '')
  const stop = async () => {
    const pid = supervisorOf(folder)
    if (pid === undefined) return
    process.kill(pid, 'SIGTERM')
    const end = performance.now() + STOP_MS
    while (supervisorOf(folder) !== undefined) {
      if (performance.now() > end) throw new CommandError('Portreeve does not stop.')
      await delay(100)
    }
  }
  return {
    is_running: () => Promise.resolve(supervisorOf(folder) !== undefined),
    async start(is_changed) {
      if (supervisorOf(folder) !== undefined) {
        if (!is_changed) return false
        await stop()
      }
      const env = {
        HOME: '/root',
        NODE_ENV: 'production',
        PORT: '9000',
        ...ALLOCATOR,
        ...settings(),
        PORTREEVE_DATA_DIR: data,
        PORTREEVE_CACHE_DIR: cache,
      }
      const argv = ['bash', join(shell, 'launch.sh'), folder, NAME, program, 'serve']
      const { exit_code, stderr } = await run(argv, { cwd: '/', env })
      if (exit_code !== 0) throw new CommandError(`The supervisor does not start: ${stderr.trim()}`)
      return true
    },
    stop,
    remove: stop,
    ends: () => Promise.resolve(logged().split(`supervisor: ${NAME} ended`).length - 1),
    lastLines: () => printed('tail', '--lines', LAST_LINES, log),
  }
}

export const hasSystemd = (): boolean => existsSync('/run/systemd/system')

/** How somebody starts what is installed here. */
export function startCommand(): string {
  if (hasSystemd() && existsSync(UNIT)) return `systemctl start ${NAME}`
  return process.env.PORTREEVE_BUILD ? 'portreeve setup' : './install.sh'
}

/** @param shell folder with the scripts of the supervisor. */
export const createService = (
  places: Places,
  settings: () => Record<string, string>,
  shell: string,
): Service => (hasSystemd() ? systemdService(places) : supervisedService(places, settings, shell))
