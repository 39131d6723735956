import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { CommandError, plain, say } from '../terminal.ts'
import { connect, parseTarget, quote, type Remote, type SshOptions } from './ssh.ts'
import { mergeSettings, settingsText } from './settings-file.ts'

export interface RemoteSetupOptions extends SshOptions {
  dataDir: string
  binDir: string
}
/** What is asked of the machine in one go. */
export interface Facts {
  system: string
  machine: string
  uid: number
  sudo: boolean
  os: string
  memory_kib: number
  disk_kib: number
  time_s: number
  busy: string
}

const LEAST_MEMORY_KIB = 700 * 1024
const LEAST_DISK_KIB = 3 * 1024 ** 2
/** Tokens, certificates and second factors go by the clock. */
const MOST_SKEW_S = 120
const MACHINES: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64' }

const QUESTIONS = [
  'echo system=$(uname -s)',
  'echo machine=$(uname -m)',
  'echo uid=$(id -u)',
  'echo sudo=$(sudo -n true 2>/dev/null && echo yes || echo no)',
  'echo os=$(. /etc/os-release 2>/dev/null; echo $ID $ID_LIKE)',
  "echo memory_kib=$(awk '/^MemTotal:/ { print $2 }' /proc/meminfo)",
  "echo disk_kib=$(df -Pk /var | awk 'NR == 2 { print $4 }')",
  'echo time_s=$(date +%s)',
  "echo busy=$(ss -Hltn 2>/dev/null | awk '{ sub(/.*:/, \"\", $4); print $4 }' | sort -un | tr '\\n' ' ')",
].join('; ')

export function readFacts(output: string): Facts {
  const found = new Map(
    [...output.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name!, value!.trim()]),
  )
  const text = (name: string) => found.get(name) ?? ''
  return {
    system: text('system'),
    machine: text('machine'),
    uid: Number(text('uid') || -1),
    sudo: text('sudo') === 'yes',
    os: text('os'),
    memory_kib: Number(text('memory_kib')),
    disk_kib: Number(text('disk_kib')),
    time_s: Number(text('time_s')),
    busy: text('busy'),
  }
}

/** What speaks against a machine: a sentence each. */
export function objections(
  facts: Facts,
  ports: readonly number[],
  now_s: number,
  arch = process.arch,
): string[] {
  const busy = facts.busy.split(/\s+/).map(Number)
  const taken = ports.filter((port) => busy.includes(port))
  const checks: readonly [is_wrong: boolean, sentence: string][] = [
    [
      facts.system !== 'Linux',
      `It runs ${facts.system || 'an unknown system'}; Portreeve runs on Linux only.`,
    ],
    [
      facts.machine !== MACHINES[arch as 'x64'],
      `Its processor is ${facts.machine}, and this program is for ${MACHINES[arch as 'x64']}.`,
    ],
    [
      !/debian|ubuntu/.test(facts.os),
      `It is no Debian or Ubuntu (${facts.os || 'unknown'}), which are the ones known here.`,
    ],
    [
      facts.uid !== 0 && !facts.sudo,
      'This user is not root, and sudo asks for a password. Log in as root, or allow sudo without one.',
    ],
    [
      facts.memory_kib < LEAST_MEMORY_KIB,
      `It has ${Math.floor(facts.memory_kib / 1024)} MiB of memory; 700 MiB are needed.`,
    ],
    [
      facts.disk_kib < LEAST_DISK_KIB,
      `It has ${Math.floor(facts.disk_kib / 1024)} MiB free in /var; 3072 MiB are needed.`,
    ],
    [
      Math.abs(facts.time_s - now_s) > MOST_SKEW_S,
      `Its clock is ${Math.abs(facts.time_s - now_s)} s off this one. Set it first.`,
    ],
    [
      taken.length > 0,
      `Its ports ${taken.join(', ')} are in use. Free them, or choose others: PORT, PORTREEVE_HTTP_PORT, PORTREEVE_HTTPS_PORT.`,
    ],
  ]
  return checks.filter(([is_wrong]) => is_wrong).map(([, sentence]) => sentence)
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}

/** Copies this program there, and makes sure that it arrived whole. */
async function copyProgram(remote: Remote, to: string): Promise<void> {
  await remote.upload(process.execPath, to)
  const { output } = await remote.run(`sha256sum ${quote(to)}`)
  if (!output.startsWith(await digestOf(process.execPath)))
    throw new CommandError('The program did not arrive as it was sent. Nothing was set up; try again.')
}

const portsOf = (settings: Record<string, string>) =>
  [settings.PORT ?? '9000', settings.PORTREEVE_HTTP_PORT ?? '80', settings.PORTREEVE_HTTPS_PORT ?? '443'].map(
    Number,
  )

/**
 * Makes a folder that only this user can look into, where programs may be run: machines that were
 * hardened run none in /tmp.
 */
const MAKE_FOLDER = [
  'umask 077',
  'for place in /tmp /var/tmp ~',
  'do folder=$(mktemp -d "$place/portreeve-XXXXXXXXXX") || continue',
  'printf \'#!/bin/sh\\n\' > "$folder/try"',
  'chmod 700 "$folder/try"',
  'if "$folder/try"; then rm "$folder/try"; echo "$folder"; exit; fi',
  'rm -r "$folder"',
  'done 2>&1',
  'exit 1',
].join('\n')

interface Call {
  settings: Record<string, string>
  options: RemoteSetupOptions
  is_root: boolean
}
/**
 * Copies this program to a folder that only this user can look into, and runs its setup; answers
 * its exit code. The settings are told to it: arguments can be read by every user of the machine,
 * and sudo writes them into a log.
 */
async function setUpThere(
  remote: Remote,
  host: string,
  { settings, options, is_root }: Call,
): Promise<number> {
  const made = await remote.run(MAKE_FOLDER)
  const folder = /^\/.*\/portreeve-\w+$/m.exec(made.output.trim().split('\n').at(-1) ?? '')?.[0]
  if (made.code !== 0 || folder === undefined)
    throw new CommandError(
      `No program can be run in /tmp, /var/tmp or the home of this user on ${host}: ${made.output.trim()}`,
    )
  try {
    say(`Copying Portreeve to ${host}.`)
    const program = `${folder}/portreeve`
    await copyProgram(remote, program)
    const places = ['--data-dir', options.dataDir, '--bin-dir', options.binDir]
    const words = [...(is_root ? [] : ['sudo', '-n']), program, 'setup', '--settings-stdin', ...places]
    const { code } = await remote.run(words.map(quote).join(' '), {
      input: settingsText(settings),
      onOutput: (text) => process.stdout.write(plain(text)),
    })
    return code
  } finally {
    await remote.run(`rm -rf ${quote(folder)}`)
  }
}

/** `portreeve setup user@host`: sets another machine up over SSH. */
export async function remoteSetup(
  env: Record<string, string | undefined>,
  where: string,
  options: RemoteSetupOptions,
): Promise<void> {
  const target = parseTarget(where)
  const {
    PORTREEVE_DATA_DIR: _data,
    PORTREEVE_CACHE_DIR: _cache,
    DOCKER_HOST: _engine,
    ...settings
  } = mergeSettings({}, env)
  const remote = await connect(target, options)
  try {
    const facts = readFacts((await remote.run(QUESTIONS)).output)
    const is_set_up = (await remote.run(`test -e ${quote(`${options.dataDir}/portreeve.env`)}`)).code === 0
    const wrong = objections(facts, is_set_up ? [] : portsOf(settings), Math.floor(Date.now() / 1000))
    if (wrong.length > 0)
      throw new CommandError(
        `${target.host} cannot be set up:\n${wrong.map((line) => `  ${line}`).join('\n')}`,
      )
    const code = await setUpThere(remote, target.host, { settings, options, is_root: facts.uid === 0 })
    if (code !== 0) throw new CommandError(`Setting ${target.host} up did not work; the reason is above.`)
  } finally {
    remote.close()
  }
}
