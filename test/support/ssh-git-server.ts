import { execFileSync, spawn } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { startGitServer, type GitServer } from './git-server.ts'

const SSHD = '/usr/sbin/sshd'
/** A real OpenSSH server on a free port that lets one key read the repositories of a Git server. */
export interface SshGitServer {
  /** `127.0.0.1:<port>`. */
  readonly host: string
  readonly port: number
  /** The private key that may read. */
  readonly deploy_key: string
  /** A valid key that may not. */
  readonly stranger_key: string
  /** The line of known_hosts of the key that the server has now. */
  readonly known_hosts: string
  /** Address of a repository of `git`. */
  url(name: string): string
  /** The same repositories; create them here. */
  readonly git: GitServer
  /** Lets the owner of one more key read: its line as authorized_keys wants it. */
  authorize(public_key: string): void
  /**
   * Command lines and environments of every process of this machine, as they were while clients were
   * connected.
   */
  processes(): string
  /** Starts anew on the same port with another host key, as a reinstalled machine would. */
  changeHostKey(): Promise<void>
  close(): Promise<void>
}

export const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })

/** Waits until the server greets. */
export async function sshReady(port: number): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const greeted = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1')
        .once('data', () => {
          socket.destroy()
          resolve(true)
        })
        .once('error', () => resolve(false))
        .once('close', () => resolve(false))
    })
    if (greeted) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('The SSH server did not start.')
}

export async function startSshGitServer(): Promise<SshGitServer> {
  if (!existsSync(SSHD))
    throw new Error("These tests need a real SSH server: install Debian's openssh-server, as npm test does.")
  const git = await startGitServer()
  const base = mkdtempSync(join(tmpdir(), 'portreeve-sshd-'))
  const at = (name: string) => join(base, name)
  const port = await freePort()
  const makeKey = (name: string) =>
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', name, '-f', at(name)])
  for (const name of ['host', 'host2', 'deploy', 'stranger']) makeKey(name)
  // Only what git and LFS ask for; the paths are those of the Git server.
  writeFileSync(
    at('command'),
    `#!/bin/sh\ncat /proc/[0-9]*/cmdline /proc/[0-9]*/environ >> ${at('processes')} 2> /dev/null\ncd ${git.root}\ncase "$SSH_ORIGINAL_COMMAND" in\n  git-lfs-authenticate*) printf '{"href":"${git.url}/lfs-over-ssh","header":{"Authorization":"RemoteAuth x"}}' ;;\n  git-upload-pack*) exec git-shell -c "$SSH_ORIGINAL_COMMAND" ;;\n  *) exit 1 ;;\nesac\n`,
  )
  chmodSync(at('command'), 0o755)
  writeFileSync(at('authorized_keys'), readFileSync(at('deploy.pub')))
  const configuration = (name: string) =>
    writeFileSync(
      at('config'),
      [
        `Port ${port}`,
        'ListenAddress 127.0.0.1',
        `HostKey ${at(name)}`,
        `AuthorizedKeysFile ${at('authorized_keys')}`,
        'PidFile none',
        'UsePAM no',
        'StrictModes no',
        'PermitRootLogin yes',
        'PasswordAuthentication no',
        'KbdInteractiveAuthentication no',
        `ForceCommand ${at('command')}`,
        '',
      ].join('\n'),
    )
  if (process.getuid?.() === 0) execFileSync('mkdir', ['-p', '/run/sshd'])
  const start = async (name: string) => {
    configuration(name)
    const child = spawn(SSHD, ['-D', '-e', '-f', at('config')], { stdio: 'ignore' })
    await sshReady(port)
    return child
  }
  let host_key = 'host'
  let child = await start(host_key)
  const stop = () =>
    new Promise<void>((resolve) => {
      child.once('exit', () => resolve()).kill()
    })
  return {
    host: `127.0.0.1:${port}`,
    port,
    git,
    deploy_key: readFileSync(at('deploy'), 'utf8'),
    stranger_key: readFileSync(at('stranger'), 'utf8'),
    get known_hosts() {
      return `[127.0.0.1]:${port} ${readFileSync(at(`${host_key}.pub`), 'utf8')}`
    },
    url: (name) => `ssh://${userInfo().username}@127.0.0.1:${port}${git.root}/${name}.git`,
    authorize: (public_key) => appendFileSync(at('authorized_keys'), `${public_key.trim()}\n`),
    processes: () => readFileSync(at('processes'), 'latin1').replaceAll('\0', ' '),
    async changeHostKey() {
      await stop()
      host_key = 'host2'
      child = await start(host_key)
    },
    async close() {
      await stop()
      await git.close()
      rmSync(base, { recursive: true, force: true })
    },
  }
}
