import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { freePort, sshReady } from './ssh-git-server.ts'

/** OpenSSH's own SFTP server on a free port, which lets one key in. */
export interface SftpServer {
  port: number
  username: string
  private_key: string
  /** Fingerprint of its host key, as `ssh-keygen -lf` prints it. */
  host_key: string
  /** Folder that tests may write into. */
  folder: string
  /** Another host key from now on, as a reinstalled machine would have. */
  changeHostKey(): Promise<void>
  close(): Promise<void>
}

const fingerprint = (path: string) =>
  execFileSync('ssh-keygen', ['-lf', path], { encoding: 'utf8' }).split(' ')[1]!

export async function startSftpServer(): Promise<SftpServer> {
  const base = mkdtempSync(join(tmpdir(), 'portreeve-sftp-'))
  const at = (name: string) => join(base, name)
  const port = await freePort()
  for (const name of ['host', 'host2', 'user'])
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', name, '-f', at(name)])
  mkdirSync(at('files'))
  if (process.getuid?.() === 0) execFileSync('mkdir', ['-p', '/run/sshd'])
  const start = async (host_key: string): Promise<ChildProcess> => {
    const lines = [
      `Port ${port}`,
      'ListenAddress 127.0.0.1',
      `HostKey ${at(host_key)}`,
      `AuthorizedKeysFile ${at('user.pub')}`,
      'PidFile none',
      'UsePAM no',
      'StrictModes no',
      'PermitRootLogin yes',
      'PasswordAuthentication no',
      'Subsystem sftp internal-sftp',
      'ForceCommand internal-sftp',
      '',
    ]
    writeFileSync(at('config'), lines.join('\n'))
    const child = spawn('/usr/sbin/sshd', ['-D', '-e', '-f', at('config')], { stdio: 'ignore' })
    await sshReady(port)
    return child
  }
  let child = await start('host')
  const stop = () =>
    new Promise<void>((resolve) => {
      child.once('exit', () => resolve()).kill()
    })
  return {
    port,
    username: userInfo().username,
    private_key: readFileSync(at('user'), 'utf8'),
    host_key: fingerprint(at('host.pub')),
    folder: at('files'),
    async changeHostKey() {
      await stop()
      child = await start('host2')
    },
    async close() {
      await stop()
      rmSync(base, { recursive: true, force: true })
    },
  }
}
