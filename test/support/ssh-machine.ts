import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, sshReady } from './ssh-git-server.ts'

/** OpenSSH's server on a free port of this machine, which lets root in with one key. */
export interface SshMachine {
  target: string
  /** File of the private key. */
  identity: string
  /** Fingerprint of its host key. */
  host_key: string
  close(): Promise<void>
}

/** @param environment of every session, as `SetEnv` of the server gives it. */
export async function startSshMachine(environment: Record<string, string>): Promise<SshMachine> {
  const base = mkdtempSync(join(tmpdir(), 'portreeve-ssh-'))
  const at = (name: string) => join(base, name)
  const port = await freePort()
  for (const name of ['host', 'user'])
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', name, '-f', at(name)])
  mkdirSync('/run/sshd', { recursive: true })
  const lines = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${at('host')}`,
    `AuthorizedKeysFile ${at('user.pub')}`,
    'PidFile none',
    'UsePAM no',
    'StrictModes no',
    'PermitRootLogin yes',
    'PasswordAuthentication no',
    'Subsystem sftp internal-sftp',
    ...(Object.keys(environment).length > 0
      ? [
          `SetEnv ${Object.entries(environment)
            .map(([name, value]) => `${name}=${value}`)
            .join(' ')}`,
        ]
      : []),
    '',
  ]
  writeFileSync(at('config'), lines.join('\n'))
  const child = spawn('/usr/sbin/sshd', ['-D', '-e', '-f', at('config')], { stdio: 'ignore' })
  await sshReady(port)
  return {
    target: `root@127.0.0.1:${port}`,
    identity: at('user'),
    host_key: execFileSync('ssh-keygen', ['-lf', at('host.pub')], { encoding: 'utf8' }).split(' ')[1]!,
    close: () =>
      new Promise((resolve) => {
        child
          .once('exit', () => {
            rmSync(base, { recursive: true, force: true })
            resolve()
          })
          .kill()
      }),
  }
}
