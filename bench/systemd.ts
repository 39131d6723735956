/**
 * The life of an installation under a real systemd, which tests do not have: a Debian boots with a systemd of its own as
 * PID 1 and an engine under it; `portreeve setup`, a first app with a volume and a database, what administrators call,
 * kills, wrong settings, upgrades, a reboot, and `portreeve uninstall`.
 * `npx node bench/systemd.ts [--install=1]`: with it also `install.sh` of a clone, which takes minutes. Needs root,
 * `npm run binary`, an engine with the base images, and 4 GB in `PORTREEVE_MACHINES` (a folder that keeps the Debian).
 */
import { execFileSync, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { eventually, nodeApp } from '#test/support/portreeve'
import { addMigration, createUpgradeStage, endAfterMigration } from '#test/support/upgrade-stage'
import { createReport, numberOptions } from './support/report.ts'
import { createSystemdMachine, machineFolder, type Said } from './support/systemd-machine.ts'

const PROGRAM = resolve('dist/portreeve')
const PASSWORD = 'correct horse battery staple'
const HOST = 'shop.apps.test'
const WRONG_KEY = 'another-key-than-that-of-the-database'
const SETTINGS = { PORTREEVE_BASE_DOMAIN: 'apps.test', PORTREEVE_ADMIN_PASSWORD: PASSWORD }
const IMAGES = ['haproxy:3.0-trixie', 'node:24-slim', 'postgres:17']
const DATA = '/var/lib/portreeve'
const options = numberOptions({ install: 0 })
const report = createReport('an installation under systemd')
if (!existsSync(PROGRAM)) throw new Error('Build the binary first: npm run binary')

const machine = await createSystemdMachine(machineFolder())
const { sh, root } = machine
const last = ({ output }: Said) => output.trim().split('\n').at(-1) ?? ''
/** A step that has to end well and print this. */
function step(name: string, script: string, text: RegExp, env: Record<string, string> = {}, code = 0): Said {
  const said = sh(script, env)
  const holds = said.code === code && text.test(said.output)
  report.check(name, holds, holds ? '' : `ended with ${said.code}: ${said.output.trim().slice(-1500)}`)
  return said
}
const READY = 'until curl -sf http://127.0.0.1:9000/readyz > /dev/null; do sleep 0.1; done'
const VISIT = `curl -s -m 5 -H 'host: ${HOST}' http://127.0.0.1/`

/** Every request of another process while something is done; answers how many failed. */
async function underProbes<T>(work: () => T): Promise<{ found: T; probes: number; failed: string[] }> {
  const ask = `while :; do curl -s -m 2 -o /dev/null -w '%{http_code}\\n' -H 'host: ${HOST}' http://${machine.address}/; sleep 0.02; done`
  const child = spawn('bash', ['-c', ask], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
  let text = ''
  child.stdout.on('data', (piece: Buffer) => {
    text += piece.toString()
  })
  const closed = new Promise((done) => child.once('close', done))
  const found = work()
  process.kill(-child.pid!, 'SIGTERM')
  await closed
  const codes = text.trim().split('\n')
  return { found, probes: codes.length, failed: codes.filter((code) => code !== '200') }
}

/** Images of this machine's engine, since no registry need be reachable. */
function provideImages(): void {
  const tar = join(root, 'root/images.tar')
  execFileSync('/usr/bin/docker', ['save', '--output', tar, ...IMAGES])
  step('the base images', 'docker load --quiet --input /root/images.tar && rm /root/images.tar', /Loaded/)
}

async function releases(): Promise<void> {
  const stage = await createUpgradeStage()
  try {
    for (const [version, change] of [
      ['2.0.0', addMigration],
      [
        '3.0.0',
        (output: string) => {
          addMigration(output)
          endAfterMigration(output)
        },
      ],
    ] as const)
      cpSync(await stage.release(version, change), join(root, 'root', version), { recursive: true })
  } finally {
    await stage.dispose()
  }
}

function setUp(): void {
  step(
    'portreeve setup',
    '/root/portreeve setup',
    /Started Portreeve\.[^]*Portreeve is ready: +http/,
    SETTINGS,
  )
  step('again, nothing is changed', 'portreeve setup', /nothing was changed/)
  step(
    'the unit runs and is enabled',
    'systemctl is-active portreeve && systemctl is-enabled portreeve',
    /active\nenabled/,
  )
  step(
    'the journal tells when it was ready',
    'journalctl -u portreeve -o cat --no-pager',
    /INFO +Portreeve is ready/,
  )
  step('portreeve host status', 'portreeve host status', /Portreeve is ready at/)
  step('portreeve host logs', 'portreeve host logs', /Portreeve is ready/)
  const doctor = sh('portreeve doctor').output
  for (const name of ['user', 'data folder', 'engine', 'build limits', 'firewall', 'egress', 'server'])
    report.check(`portreeve doctor: ${name}`, new RegExp(`^ok +${name} `, 'm').test(doctor), '')
  sh('useradd --create-home bob')
  const as_bob = (call: string) =>
    `cd / && setpriv --reuid bob --regid bob --clear-groups --reset-env ${call}`
  step('another user calls it as a client', as_bob('portreeve --version'), /^\d/)
  step('and is told who may see the server', as_bob('portreeve host status'), /run this as root/, {}, 1)
}

async function firstApp(): Promise<void> {
  const folder = join(root, 'root/shop')
  mkdirSync(folder)
  const kept = `const fs = require('node:fs'), at = '/data/kept'
require('node:http').createServer((q, r) => { if (q.url === '/keep') fs.writeFileSync(at, 'kept'); r.end(fs.existsSync(at) ? 'kept' : 'fresh') }).listen(process.env.PORT || 3000)`
  const files = {
    ...nodeApp('shop'),
    'server.js': kept,
    Dockerfile:
      'FROM node:24-slim\nCOPY server.js /\nRUN id\nENV PORT=3000\nEXPOSE 3000\nCMD ["node", "/server.js"]\n',
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  const login = `echo '${PASSWORD}' | portreeve login http://127.0.0.1:9000 --email admin@localhost --password-stdin`
  step('portreeve login', login, /Logged in/)
  step('portreeve deploy', 'cd /root/shop && portreeve deploy', /is live after/)
  step('the app answers', VISIT, /^fresh$/)
  await useVolume()
  step(
    'portreeve exec ends with the code of the command',
    'cd /root/shop && portreeve exec -- sh -c "exit 7"',
    /^/,
    {},
    7,
  )
}

const url = `http://${machine.address}:9000`
let token = ''
async function call(method: string, path: string, body?: unknown): Promise<any> {
  const answer = await fetch(url + path, {
    method,
    // The server ends idle connections while the steps of this bench keep its own process busy.
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}`, connection: 'close' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const { data, error } = (await answer.json()) as any
  if (error) throw new Error(`${method} ${path}: ${error.message}`)
  return data
}

async function useVolume(): Promise<void> {
  token = (await call('POST', '/api/auth/login', { email: 'admin@localhost', password: PASSWORD })).token
  const [app] = await call('GET', '/api/apps')
  const { project_id } = app
  const volume = await call('POST', '/api/volumes', { name: 'files', project_id })
  const database = await call('POST', '/api/databases', { name: 'shop-db', engine: 'postgres', project_id })
  await call('POST', `/api/apps/${app.id}/mounts`, { path: '/data', volume_id: volume.id })
  step('a volume is written', `cd /root/shop && portreeve deploy > /dev/null && ${VISIT}keep`, /^kept$/)
  await eventually('The database', async () =>
    (await call('GET', `/api/databases/${database.id}`)).status === 'running' ? true : undefined,
  )
  await call('POST', '/api/storage-providers', { name: 'disk', kind: 'local', config: {}, is_default: true })
  const { id } = await call('POST', `/api/databases/${database.id}/backup`, {})
  const ended = await eventually('The backup', async () => {
    const found = await call('GET', `/api/backups/${id}`)
    return ['succeeded', 'failed'].includes(found.status) ? found : undefined
  })
  report.check('a backup of the database', ended.status === 'succeeded', ended.error ?? '')
}

async function faults(): Promise<void> {
  const kill = `before=$(systemctl show -p MainPID --value portreeve); kill -9 $before; sleep 0.5; ${READY}; after=$(systemctl show -p MainPID --value portreeve); [ $before != $after ] && echo $after`
  step('kill -9: systemd starts it again', kill, /^\d+$/m)
  step(
    'settings that do not start are taken back',
    'portreeve setup',
    /taken back: it runs as before[^]*is not the key/,
    { PORTREEVE_SECRET_KEY: WRONG_KEY },
    1,
  )
  step('the server from before serves', 'portreeve host status', /Portreeve is ready at/)
  step(
    'a restart of the engine',
    `systemctl restart docker && for i in $(seq 50); do [ "$(${VISIT})" = kept ] && break; sleep 0.2; done; ${VISIT}`,
    /^kept$/,
  )
  await eventually('The filter of the new engine', () =>
    /^ok +egress /m.test(sh('portreeve doctor').output) ? true : undefined,
  )
  const bad = await underProbes(() => sh('portreeve upgrade /root/3.0.0'))
  report.check(
    'an upgrade that does not start goes back',
    bad.found.code === 1 && /3\.0\.0 failed: It ended with the code 3/.test(bad.found.output),
    last(bad.found),
  )
  const good = await underProbes(() => sh('portreeve upgrade /root/2.0.0'))
  report.check(
    'an upgrade',
    good.found.code === 0 && /Portreeve 2\.0\.0 serves/.test(good.found.output),
    last(good.found),
  )
  const failed = [...bad.failed, ...good.failed]
  report.check(
    'no request of the app was lost',
    failed.length === 0 && bad.probes + good.probes > 20,
    `${failed.length} of ${bad.probes + good.probes}`,
  )
  step('it is the new program', 'portreeve --version', /^2\.0\.0$/m)
}

async function reboot(): Promise<void> {
  const began = performance.now()
  await machine.powerOff()
  await machine.boot()
  await eventually('The app after a reboot', () => (sh(VISIT).output === 'kept' ? true : undefined))
  report.check(
    'after a reboot the app is back, with its volume',
    true,
    `${((performance.now() - began) / 1000).toFixed(1)} s`,
  )
  step('and so is the server', `${READY}; portreeve host status`, /Portreeve is ready at/)
}

/** What of ours is left outside of what an uninstall names. */
const LEFT = `find / -xdev \\( -path /proc -o -path /sys -o -path /root -o -path /home -o -path ${DATA} -o -path /var/lib/docker \\) -prune -o -iname '*portreeve*' -print`
function uninstall(): void {
  step('portreeve uninstall', 'portreeve uninstall', /are gone\.[^]*still in \/var\/lib\/portreeve/)
  step('the app serves on', VISIT, /^kept$/)
  const left = sh(LEFT).output.trim()
  report.check('nothing is left but what it names', left === '', left)
  step('nor a unit', 'systemctl cat portreeve', /No files found/, {}, 1)
}

function installFromClone(): void {
  sh(`docker ps -aq --filter label=portreeve.managed=true | xargs -r docker rm -f; rm -rf ${DATA}`)
  const npm = join(
    dirname(execFileSync('bash', ['-c', 'realpath "$(command -v npm)"'], { encoding: 'utf8' }).trim()),
    '..',
  )
  cpSync(process.execPath, join(root, 'usr/local/bin/node'))
  cpSync(npm, join(root, 'usr/local/lib/npm'), { recursive: true })
  sh('ln -sf ../lib/npm/bin/npm-cli.js /usr/local/bin/npm')
  execFileSync('git', ['clone', '-q', '--no-hardlinks', '.', join(root, 'root/checkout')])
  const env = { ...SETTINGS, NODE_EXTRA_CA_CERTS: '/etc/ssl/certs/ca-certificates.crt' }
  const within = (words: string) => `cd /root/checkout && ./install.sh ${words}`
  step('install.sh', within(''), /Started Portreeve\.[^]*Portreeve is ready: +http/, env)
  step('again, nothing is changed', within(''), /nothing was changed/, env)
  step(
    'settings that do not start are taken back',
    within(''),
    /taken back: it runs as before/,
    { ...env, PORTREEVE_SECRET_KEY: WRONG_KEY },
    1,
  )
  step('the server from before serves', within('--status'), /Portreeve is ready/)
  step('install.sh --uninstall', within('--uninstall'), /are gone/)
  const left = sh(LEFT).output.trim()
  report.check('nothing is left but what it names', left === '', left)
}

try {
  await releases()
  await machine.boot()
  provideImages()
  cpSync(PROGRAM, join(root, 'root/portreeve'))
  setUp()
  await firstApp()
  await faults()
  await reboot()
  uninstall()
  if (options.install) installFromClone()
} finally {
  await machine.dispose()
}
report.end()
