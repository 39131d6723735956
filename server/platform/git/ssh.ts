import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { GitCredential } from './git.ts'
import { GitError } from './git.ts'
import { hostKeyName, publishedHostKey } from './known-hosts.ts'
import type { GitUrl } from './parse-url.ts'

type SshCredential = Extract<GitCredential, { kind: 'ssh' }>

/**
 * Files of one session that let ssh connect to one checked address, and to nothing else. Paths are relative
 * to the repository's folder.
 */
export interface SshFiles {
  files: Record<string, string>
  /** Keeps the host's key when this was the first contact; from then on another key is refused. */
  remember(session_directory: string): Promise<void>
}

/** The name of a host's pin is a hash, because host names come from users and folders should not. */
const pinOf = (pins: string, url: GitUrl) =>
  join(pins, createHash('sha256').update(hostKeyName(url.host, url.port)).digest('hex').slice(0, 32))

function configuration(url: GitUrl, address: string, strict: boolean): string {
  const options: Record<string, string> = {
    HostName: address,
    HostKeyAlias: hostKeyName(url.host, url.port),
    IdentityFile: '../identity',
    IdentitiesOnly: 'yes',
    IdentityAgent: 'none',
    PreferredAuthentications: 'publickey',
    BatchMode: 'yes',
    StrictHostKeyChecking: strict ? 'yes' : 'accept-new',
    UserKnownHostsFile: '../known_hosts',
    GlobalKnownHostsFile: '/dev/null',
    UpdateHostKeys: 'no',
    HashKnownHosts: 'no',
    CheckHostIP: 'no',
    ForwardAgent: 'no',
    ForwardX11: 'no',
    ClearAllForwardings: 'yes',
    PermitLocalCommand: 'no',
    ProxyCommand: 'none',
    ControlMaster: 'no',
    CanonicalizeHostname: 'no',
    ConnectTimeout: '15',
    ServerAliveInterval: '15',
    ServerAliveCountMax: '3',
    LogLevel: 'ERROR',
  }
  return ['Host *', ...Object.entries(options).map(([name, value]) => `  ${name} ${value}`), ''].join('\n')
}

/** OpenSSH reads a key only with Unix line ends and one at the end. */
function privateKey(credential: SshCredential): string {
  const text = credential.private_key.replace(/\r\n?/g, '\n').trim()
  if (!/^-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----\n/.test(text) || text.includes('\0')) {
    throw new GitError(
      'authentication',
      'The deploy key of this repository is not a private key.',
      'Paste the whole private key in OpenSSH format, from its BEGIN line to its END line.',
    )
  }
  return `${text}\n`
}

/**
 * Prepares ssh. The host's key is taken from the credential, else from what the large forges publish, else
 * from the first contact:
 * only that first contact is trusted, and it is remembered.
 */
export async function prepareSsh(
  url: GitUrl,
  address: string,
  credential: GitCredential | undefined,
  pins: string,
): Promise<SshFiles> {
  const own = credential?.kind === 'ssh' ? credential.known_hosts?.replace(/\r\n?/g, '\n').trim() : undefined
  const pinned = await readFile(pinOf(pins, url), 'utf8').catch(() => undefined)
  const known = own || publishedHostKey(url.host, url.port) || pinned
  return {
    files: {
      ssh_config: configuration(url, address, known !== undefined),
      known_hosts: known ? `${known}\n` : '',
      ...(credential?.kind === 'ssh' ? { identity: privateKey(credential) } : {}),
    },
    async remember(session_directory) {
      if (known !== undefined) return
      const seen = join(session_directory, 'known_hosts')
      if ((await readFile(seen, 'utf8').catch(() => '')) === '') return
      const pin = pinOf(pins, url)
      await mkdir(dirname(pin), { recursive: true, mode: 0o700 })
      await writeFile(pin, await readFile(seen), { mode: 0o600, flag: 'wx' }).catch(
        (error: NodeJS.ErrnoException) => {
          // Another session met the host at the same time; its pin counts from now on.
          if (error.code !== 'EEXIST') throw error
        },
      )
    },
  }
}
