import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import Docker from 'dockerode'
import { pack } from 'tar-stream'
import { createDockerEngine, type DockerEngineOptions } from '#server/platform/engine/docker'
import type { Engine } from '#server/platform/engine/engine'

/** A static busybox on an empty file system: the smallest image that has a shell and an HTTP server. */
export const BUSYBOX_IMAGE = 'portreeve-test/busybox:1'

/**
 * Where the engine of the tests listens: `npm test` starts one with a socket of its own where none answers.
 */
export const TEST_DOCKER_HOST = process.env.DOCKER_HOST || 'unix:///var/run/docker.sock'

/** The engine that the tests use, without Portreeve's adapter between. */
export const testDocker = (): Docker => new Docker({ socketPath: TEST_DOCKER_HOST.replace(/^unix:\/\//, '') })

/**
 * What tests make carries a name of its own, so that no server on the same engine takes it for an orphan, nor
 * the other way round.
 */
export const TEST_INSTALLATION = `test-${process.pid}`

/** The adapter under test, on the engine of the tests. */
export const testEngine = (options: Partial<DockerEngineOptions> = {}): Engine =>
  createDockerEngine({ docker_host: TEST_DOCKER_HOST, installation: TEST_INSTALLATION, ...options })

/**
 * Makes the busybox image from Debian's `busybox-static` package where it is absent, since no registry may be
 * reachable.
 */
export async function ensureBusyboxImage(docker = testDocker()): Promise<void> {
  const known = await docker
    .getImage(BUSYBOX_IMAGE)
    .inspect()
    .catch(() => undefined)
  if (known) return
  const folder = mkdtempSync(join(tmpdir(), 'portreeve-busybox-'))
  try {
    execFileSync('apt-get', ['download', 'busybox-static'], { cwd: folder, stdio: 'ignore' })
    const deb = readdirSync(folder).find((name) => name.endsWith('.deb'))
    if (!deb) throw new Error('apt-get download brought no package')
    execFileSync('dpkg', ['-x', deb, 'root'], { cwd: folder })
    const binary = join(folder, 'root/bin/busybox')
    const applets = execFileSync(binary, ['--list'], { encoding: 'utf8' }).split('\n').filter(Boolean)
    const tar = pack()
    for (const name of ['bin', 'tmp', 'etc', 'root', 'www'])
      tar.entry({ name, type: 'directory', mode: name === 'tmp' ? 0o1777 : 0o755 })
    tar.entry(
      { name: 'etc/passwd', mode: 0o644 },
      'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n',
    )
    tar.entry({ name: 'bin/busybox', mode: 0o755 }, readFileSync(binary))
    for (const applet of applets)
      if (applet !== 'busybox') tar.entry({ name: `bin/${applet}`, type: 'symlink', linkname: 'busybox' })
    tar.finalize()
    const [repo, tag] = BUSYBOX_IMAGE.split(':')
    const answer = await docker.importImage(
      tar as unknown as NodeJS.ReadableStream,
      { repo, tag, changes: ['ENV PATH=/bin', 'CMD ["sh"]'] } as never,
    )
    const progress = await text(answer as unknown as AsyncIterable<Uint8Array>)
    if (progress.includes('"error"')) throw new Error(`importing busybox failed: ${progress}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
