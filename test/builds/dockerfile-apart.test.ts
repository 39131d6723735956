import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DOCKERFILE_WORKER, readDockerfile } from '#server/builds/dockerfile-apart'
import { dockerfileSources } from '#server/builds/dockerfile-sources'
import { bundleThread } from '../../cli/build-module.ts'
import { ROOT } from '#test/support/routes'

const folder = mkdtempSync(join(tmpdir(), 'portreeve-dockerfile-'))
const thread = join(folder, 'dockerfile.mjs')
const broken = join(folder, 'broken.mjs')
beforeAll(async () => {
  writeFileSync(broken, `throw new Error('a thread was started')`)
  await bundleThread(ROOT, DOCKERFILE_WORKER, thread)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const SHORT = 'ARG V=1\nFROM node:$V AS a\nADD https://example.com/x.tar /x\n'
const LONG = `${SHORT}${'RUN true\n'.repeat(1000)}COPY --from=busybox:1 /bin /bin\n`

describe('a long Dockerfile', () => {
  it('is read in a thread of its own, so that nobody waits for it, and a short one at once', async () => {
    await expect(readDockerfile(LONG, {}, broken)).rejects.toThrow('a thread was started')
    expect(await readDockerfile(SHORT, {}, broken)).toEqual(dockerfileSources(SHORT, {}))
  })
  it('is read there as it is here', async () => {
    expect(await readDockerfile(LONG, { V: '22' }, thread)).toEqual(dockerfileSources(LONG, { V: '22' }))
    expect((await readDockerfile(LONG, {}, join(folder, 'none.mjs'))).images).toContain('busybox:1')
    await expect(readDockerfile(`{${LONG}`, {}, thread)).rejects.toThrow('The file is not a Dockerfile')
  })
  it('whose variables may become too many texts is told as open, not worked out', () => {
    const args = Array.from({ length: 60 }, (_, at) => `ARG A=${at}`)
    const stages = Array.from({ length: 2000 }, (_, at) => `FROM a${at}$A$A`)
    const { images, unclear } = dockerfileSources([...args, ...stages].join('\n'), {})
    expect(unclear).not.toEqual([])
    expect(images.length).toBeLessThan(5000)
  })
})
