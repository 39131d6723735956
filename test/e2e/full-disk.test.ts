import { execFileSync } from 'node:child_process'
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { BUSYBOX_IMAGE, ensureBusyboxImage } from '#test/support/engine-images'
import { ADMIN, eventually, type Portreeve, startPortreeve } from '#test/support/portreeve'

let disk: string
let portreeve: Portreeve
const DOCKERFILE = `FROM ${BUSYBOX_IMAGE}
CMD ["sh", "-c", "mkdir /www; echo served > /www/index.html; exec httpd -f -p 8080 -h /www"]
`
const filler = () => join(disk, 'filler')

/** Takes what the disk gives, to the last byte. */
function fill(): void {
  const file = openSync(filler(), 'a')
  try {
    for (const size of [1024 ** 2, 4096, 1]) {
      const piece = Buffer.alloc(size)
      try {
        for (;;) if (writeSync(file, piece) < size) break
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      }
    }
  } finally {
    closeSync(file)
  }
}
const logIn = async () => (await portreeve.call('POST', '/api/auth/login', ADMIN)).status
async function makeAndDelete(name: string): Promise<number[]> {
  const made = await portreeve.call('POST', '/api/projects', { name })
  const shown = await portreeve.call('GET', `/api/projects/${made.body.data?.id}`)
  const deleted = await portreeve.call('DELETE', `/api/projects/${made.body.data?.id}`)
  return [made.status, shown.status, deleted.status]
}

beforeAll(async () => {
  await ensureBusyboxImage()
  disk = mkdtempSync(join(tmpdir(), 'ptr-disk-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=128m', 'portreeve-test', disk])
  const before = process.env.TMPDIR
  process.env.TMPDIR = disk
  try {
    portreeve = await startPortreeve()
  } finally {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  }
})
afterAll(async () => {
  rmSync(filler(), { force: true })
  await portreeve?.dispose()
  execFileSync('umount', ['--lazy', disk])
  rmSync(disk, { recursive: true })
})

async function deployed(name: string): Promise<string> {
  const made = await portreeve.call('POST', '/api/apps', {
    ...{ name, dockerfile: DOCKERFILE, port: 8080, soak_seconds: 0 },
  })
  const { id, latest_deployment } = made.body.data
  expect(await portreeve.untilDeployment(latest_deployment.id)).toMatchObject({ status: 'live' })
  return id
}

test('on a disk without a single byte people log in, and make, stop and delete things', async () => {
  const [stopped, deleted] = [await deployed('stopped'), await deployed('deleted')]
  await eventually('The room being held', () =>
    existsSync(join(portreeve.data_directory, 'spare')) ? true : undefined,
  )
  fill()
  expect(await logIn()).toBe(200)
  for (let i = 0; i < 20; i++) expect(await makeAndDelete(`p${i}`)).toEqual([201, 200, 200])
  expect((await portreeve.call('POST', `/api/apps/${stopped}/stop`)).status).toBeLessThan(300)
  await portreeve.untilApp(stopped, 'stopped')
  expect((await portreeve.call('DELETE', `/api/apps/${deleted}?skip_backup=true`)).status).toBe(200)
  await eventually('The app being gone', async () =>
    (await portreeve.call('GET', `/api/apps/${deleted}`)).status === 404 ? true : undefined,
  )
  expect((await portreeve.visit('deleted.apps.test')).status).toBe(404)
})
test('it starts again there, after it was killed and after it was stopped', async () => {
  await portreeve.kill()
  fill()
  await portreeve.start()
  expect(portreeve.output()).toContain('the room that was kept for a start was given up')
  expect([await logIn(), ...(await makeAndDelete('killed'))]).toEqual([200, 201, 200, 200])
  expect(await portreeve.stop()).toBe(0)
  await portreeve.start()
  expect([await logIn(), ...(await makeAndDelete('stopped'))]).toEqual([200, 201, 200, 200])
})
