import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { docker, eventually, freePort } from './portreeve.ts'

/** Who may read and write. The line of htpasswd below is this password's. */
export const REGISTRY_LOGIN = { username: 'ada', password: 'canary-registry-7b3e90d14c' }
const HTPASSWD = 'ada:$2b$05$abcdefghijklmnopqrstuuoPZNl/MPqUSmBMHFAQu1/HxsqEZlu0y\n'

/** A real image registry on this machine that answers nobody without the login. */
export interface Registry {
  /** `127.0.0.1:<port>`, as image references begin. */
  readonly host: string
  /**
   * Puts an image that the engine has into the registry and takes the name away from the engine again;
   * returns its reference.
   */
  publish(image: string, name: string): string
  /** Takes what was pulled from it away from the engine. */
  forget(): void
  /** Takes the login away, as somebody does who changes a password there. */
  revoke(): void
  /** Ends it, and forgets. */
  close(): Promise<void>
}

/** Unpacks Debian's `docker-registry` without installing it, since its package would start a service. */
function unpackProgram(base: string): string {
  const download = () =>
    execFileSync('apt-get', ['download', '--quiet', 'docker-registry'], {
      cwd: base,
      stdio: 'ignore',
    })
  try {
    download()
  } catch {
    execFileSync('apt-get', ['update', '--quiet'], { stdio: 'ignore' })
    download()
  }
  const deb = readdirSync(base).find((name) => name.endsWith('.deb'))
  if (!deb) throw new Error('apt-get download brought no package')
  execFileSync('dpkg', ['-x', deb, 'root'], { cwd: base })
  return join(base, 'root/usr/bin/docker-registry')
}

export async function startRegistry(): Promise<Registry> {
  const base = mkdtempSync(join(tmpdir(), 'portreeve-registry-'))
  const at = (name: string) => join(base, name)
  const program = unpackProgram(base)
  const host = `127.0.0.1:${await freePort()}`
  writeFileSync(at('htpasswd'), HTPASSWD)
  writeFileSync(
    at('config.yml'),
    [
      'version: 0.1',
      `storage: { filesystem: { rootdirectory: ${at('data')} } }`,
      `http: { addr: "${host}" }`,
      `auth: { htpasswd: { realm: registry, path: ${at('htpasswd')} } }`,
      '',
    ].join('\n'),
  )
  const auth = Buffer.from(`${REGISTRY_LOGIN.username}:${REGISTRY_LOGIN.password}`).toString('base64')
  writeFileSync(at('config.json'), JSON.stringify({ auths: { [host]: { auth } } }))
  const child = spawn(program, ['serve', at('config.yml')], { stdio: 'ignore' })
  await eventually(
    'The registry answering',
    async () => ((await fetch(`http://${host}/v2/`)).status === 401 ? true : undefined),
    20_000,
  )
  const forget = () => {
    const pulled = docker('images', '--format', '{{.Repository}}:{{.Tag}}')
      .split('\n')
      .filter((name) => name.startsWith(`${host}/`))
    if (pulled.length > 0) docker('rmi', '-f', ...pulled)
  }
  return {
    host,
    forget,
    publish(image, name) {
      const reference = `${host}/${name}`
      docker('tag', image, reference)
      docker('--config', base, 'push', '--quiet', reference)
      docker('rmi', reference)
      return reference
    },
    revoke: () => writeFileSync(at('htpasswd'), HTPASSWD.replace('ada:', 'eve:')),
    async close() {
      forget()
      await new Promise<void>((resolve) => {
        child.once('exit', () => resolve()).kill()
      })
      rmSync(base, { recursive: true, force: true })
    },
  }
}
