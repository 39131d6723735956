import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { edgeName } from '#server/platform/ingress/edge-name'

const root = join(import.meta.dirname, '..', '..')
let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portreeve-systemd-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

/**
 * install.sh calls these; systemd is one that starts a server again for ever and, as the real one,
 * does not forget its count of restarts when a unit is stopped while it waits for its next one. A
 * server with `HOST=wrong` never starts.
 */
const STAGE = `
  ROOT=${root} DIR=$1 SETTINGS=$1/settings DATA_DIR=$1 RUN_DIR=$1 UNIT=$1/unit restart=yes
  . "$ROOT/scripts/shell/settings.sh"; . "$ROOT/scripts/shell/service.sh"; . "$ROOT/scripts/shell/run.sh"
  echo 0 > "$DIR/restarts"
  echo yes > "$DIR/active"
  looks=0
  active() { [ "$(cat "$DIR/active")" = yes ]; }
  has_systemd() { true; }
  journalctl() { :; }
  sleep() { :; }
  say() { echo "$*"; }
  changed() { :; }
  fail() { echo "fail: $1"; echo "active: $(cat "$DIR/active")"; exit 1; }
  starts() { ! grep -qs wrong "$SETTINGS"; }
  is_ready() { looks=$((looks + 1)); starts && active && [ $looks -gt 1 ]; }
  systemctl() {
    case $1 in
      is-active) active ;;
      show)
        if ! starts; then echo $(($(cat "$DIR/restarts") + 1)) > "$DIR/restarts"; fi
        cat "$DIR/restarts" ;;
      start | restart)
        looks=0
        echo yes > "$DIR/active" ;;
      stop) echo no > "$DIR/active" ;;
    esac
  }
`
function run(script: string, env: Record<string, string> = {}): string {
  const argv = ['--norc', '-c', `set -euo pipefail\n${STAGE}\n${script} || true`, 'bash', folder]
  try {
    return execFileSync('bash', argv, { encoding: 'utf8', env: { PATH: process.env.PATH ?? '', ...env } })
  } catch (error) {
    return (error as { stdout: string }).stdout
  }
}

test('after settings that the server does not start with, those from before get their turn, though systemd counts on', () => {
  writeFileSync(join(folder, 'settings'), 'PORT="9100"\n')
  const said = run('settings_store "$SETTINGS"; start_portreeve', { PORT: '9100', HOST: 'wrong' })
  expect(said).toContain('so they were taken back: it runs as before.')
  expect(said).toContain('active: yes')
  expect(readFileSync(join(folder, 'settings'), 'utf8')).toBe('PORT="9100"\n')
})

test('a server that starts with neither is stopped, as the sentence says', () => {
  writeFileSync(join(folder, 'settings'), 'HOST="wrong before"\n')
  const said = run('settings_store "$SETTINGS"; start_portreeve', { HOST: 'wrong now' })
  expect(said).toContain('nor with those from before, so it was stopped.')
  expect(said).toContain('active: no')
})

test('the unit of another installation is not taken from it, which would serve an empty one in its place', () => {
  const check = 'SETTINGS=$1/portreeve.env; require_own_unit; echo ours'
  expect(run(check)).toBe('ours\n')
  run('render_unit "$ROOT" "$DIR" > "$UNIT"')
  expect(run(check)).toBe('ours\n')
  run('render_unit "$ROOT" "/srv/100% others" > "$UNIT"')
  expect(run(check)).toContain(
    'fail: The unit portreeve.service is of the installation in /srv/100% others. Name that with --data-dir, or take it away first: --uninstall --data-dir',
  )
})

test('an uninstall takes the command of this checkout away, and leaves one of somebody else', () => {
  const command = join(folder, 'portreeve')
  const uninstall =
    'host_rules_shared() { false; }; host_rules_remove() { :; }; uninstall_portreeve "$DIR/portreeve"'
  writeFileSync(command, '#!/bin/sh\n')
  run(uninstall)
  expect(existsSync(command)).toBe(true)
  writeFileSync(command, `# The command line of the Portreeve in ${root}; written by its install.sh.\n`)
  expect(run(uninstall)).toContain('The unit, the command and the firewall rules of Portreeve are gone.')
  expect(existsSync(command)).toBe(false)
})

test('an uninstall leaves the firewall rules while another installation runs here or has containers on this engine', () => {
  const docker = join(folder, 'docker')
  const register = join(folder, 'register')
  mkdirSync(register)
  const engine = (...installations: string[]) =>
    writeFileSync(
      docker,
      `#!/bin/sh\nprintf '%s\\n' ${installations.map((name) => `'${name}'`).join(' ')}\n`,
      {
        mode: 0o755,
      },
    )
  const uninstall = `
    . "$ROOT/scripts/shell/engine.sh"
    engine_client() { echo "$DIR/docker"; }
    eval "shared() $(declare -f host_rules_shared | tail -n +2)"
    host_rules_shared() { shared "$1" "$DIR/register"; }
    host_rules_remove() { echo removed; }
    installation_name() { echo a1; }
    uninstall_portreeve "$DIR/none"`
  // The edge has no name of an installation; who has ended is none any more.
  engine('a1', '')
  writeFileSync(join(register, '999999999.00000000-0000-0000-0000-000000000000.1'), '{}')
  expect(run(uninstall)).toContain('removed')
  engine('a1', 'b2')
  expect(run(uninstall)).not.toContain('removed')
  // However many of them there are: more than one buffer of what comes before.
  engine(...Array.from({ length: 5_000 }, () => 'installation_of_somebody_else'))
  expect(run(uninstall)).not.toContain('removed')
  engine('a1')
  writeFileSync(join(register, `${process.pid}.00000000-0000-0000-0000-000000000000.1`), '{}')
  expect(run(uninstall)).not.toContain('removed')
  expect(run(uninstall)).toContain('they guard the apps of another installation, too')
})

test('an address that the machine does not have is told as one, and not as a port that is taken', () => {
  const checked = `
    . "$ROOT/scripts/shell/preflight.sh"; . "$ROOT/scripts/shell/steps.sh"
    is_running() { false; }
    require_space() { :; }
    check_room`
  expect(run(checked, { HOST: '192.0.2.77', PORT: '59999' })).toContain(
    'fail: 192.0.2.77 is no address of this machine. Set HOST to one that it has, or leave it out.',
  )
})

test('only the edge of this installation may have its ports, not one of another', () => {
  const checked = `
    . "$ROOT/scripts/shell/steps.sh"
    engine_client() { echo "$DIR/docker"; }
    is_running() { false; }
    engine_answers() { true; }
    require_space() { :; }
    port_is_free() { [ "$2" = 9000 ]; }
    check_room; echo room`
  const running = (name: string) =>
    writeFileSync(
      join(folder, 'docker'),
      `#!/bin/sh\ncase $1 in ps) echo 0123 ;; esac\nfor word; do last=$word; done\nif [ "$last" = ${name} ]; then echo true; fi\n`,
      { mode: 0o755 },
    )
  running('portreeve-edge-of-another')
  expect(run(checked)).toContain('fail: Port 80, on which apps are served, is taken by another program.')
  running(edgeName(join(folder, 'ingress')))
  expect(run(checked)).toContain('room')
})
