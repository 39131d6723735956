import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { startGitServer, type GitServer } from './git-server.ts'

const SSHD = '/usr/sbin/sshd'
/** False where Debian's `openssh-server` is not installed. */
export const hasSshServer = existsSync(SSHD)

/** A real OpenSSH server on a free port that lets one key read the repositories of a Git server. */
export interface SshGitServer {
  /** `127.0.0.1:<port>`. */
  readonly host: string
  readonly port: number
  /** The private key that may read. */
  readonly deploy_key: string
  /** A valid key that may not. */
  readonly stranger_key: string
  /** The server's line of known_hosts. */
  readonly known_hosts: string
  /** Address of a repository of `git`. */
  url(name: string): string
  /** The same repositories; create them here. */
  readonly git: GitServer
  /** Starts anew on the same port with another host key, as a reinstalled machine would. */
  changeHostKey(): Promise<void>
  close(): Promise<void>
}

const freePort = (): Promise<number> => new Promise((resolve) => {
  const probe = createServer().listen(0, '127.0.0.1', () => {
    const { port } = probe.address() as AddressInfo
    probe.close(() => resolve(port))
  })
})

/** Waits until the server greets. */
async function ready(port: number): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const greeted = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1').once('data', () => { socket.destroy(); resolve(true) }).once('error', () => resolve(false)).once('close', () => resolve(false))
    })
    if (greeted) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('The SSH server did not start.')
}

export async function startSshGitServer(): Promise<SshGitServer> {
  const git = await startGitServer()
  const base = mkdtempSync(join(tmpdir(), 'portreeve-sshd-'))
  const at = (name: string) => join(base, name)
  const port = await freePort()
  const makeKey = (name: string) => execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', name, '-f', at(name)])
  for (const name of ['host', 'host2', 'deploy', 'stranger']) makeKey(name)
  // Only what git and LFS ask for; the paths are those of the Git server.
  writeFileSync(at('command'), `#!/bin/sh\ncd ${git.root}\ncase "$SSH_ORIGINAL_COMMAND" in\n  git-lfs-authenticate*) printf '{"href":"${git.url}/lfs-over-ssh","header":{"Authorization":"RemoteAuth x"}}' ;;\n  git-upload-pack*) exec git-shell -c "$SSH_ORIGINAL_COMMAND" ;;\n  *) exit 1 ;;\nesac\n`)
  chmodSync(at('command'), 0o755)
  writeFileSync(at('authorized_keys'), readFileSync(at('deploy.pub')))
  const configuration = (host_key: string) => writeFileSync(at('config'), [
    `Port ${port}`, 'ListenAddress 127.0.0.1', `HostKey ${at(host_key)}`, `AuthorizedKeysFile ${at('authorized_keys')}`, 'PidFile none', 'UsePAM no', 'StrictModes no', 'PermitRootLogin yes',
    'PasswordAuthentication no', 'KbdInteractiveAuthentication no', `ForceCommand ${at('command')}`, '',
  ].join('\n'))
  if (process.getuid?.() === 0) execFileSync('mkdir', ['-p', '/run/sshd'])
  const start = async (host_key: string) => {
    configuration(host_key)
    const child = spawn(SSHD, ['-D', '-e', '-f', at('config')], { stdio: 'ignore' })
    await ready(port)
    return child
  }
  let child = await start('host')
  const stop = () => new Promise<void>((resolve) => { child.once('exit', () => resolve()).kill() })
  return {
    host: `127.0.0.1:${port}`, port, git,
    deploy_key: readFileSync(at('deploy'), 'utf8'), stranger_key: readFileSync(at('stranger'), 'utf8'),
    known_hosts: `[127.0.0.1]:${port} ${readFileSync(at('host.pub'), 'utf8')}`,
    url: (name) => `ssh://${userInfo().username}@127.0.0.1:${port}${git.root}/${name}.git`,
    async changeHostKey() {
      await stop()
      child = await start('host2')
    },
    async close() {
      await stop()
      await git.close()
      rmSync(base, { recursive: true, force: true })
    },
  }
}
