import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync, truncateSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '#test/support/portreeve'
import {
  addMigration,
  createUpgradeStage,
  endAfterMigration,
  type UpgradeStage,
} from '#test/support/upgrade-stage'

const LIMIT_MS = 900_000
let stage: UpgradeStage
let good: string
let bad: string
let schema: number
const release = (version: string) => join(stage.folder, version)
/** What stands there and serves: its version, and the schema of the database. */
const found = async () => {
  await stage.ready()
  return [await stage.version(), stage.database().schema]
}

beforeAll(async () => {
  stage = await createUpgradeStage()
  const old = await stage.release('1.0.0', () => undefined)
  good = await stage.release('2.0.0', addMigration)
  bad = await stage.release('3.0.0', (output) => {
    addMigration(output)
    endAfterMigration(output)
  })
  await stage.install(old)
  schema = stage.database().schema
}, LIMIT_MS)
afterAll(() => stage.dispose())

describe('portreeve upgrade', () => {
  it('refuses a program that was cut off on its way, from a folder and from an address, and changes nothing', async () => {
    const place = release('damaged')
    mkdirSync(place)
    copyFileSync(join(good, 'portreeve'), join(place, 'portreeve'))
    copyFileSync(join(good, 'portreeve.sha256'), join(place, 'portreeve.sha256'))
    truncateSync(join(place, 'portreeve'), 1_000_000)
    const server = createServer((request, response) => response.end(readFileSync(join(place, request.url!))))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    for (const from of [place, `http://127.0.0.1:${port}/portreeve`])
      expect(await stage.run('upgrade', from)).toMatchObject({
        code: 1,
        output: expect.stringContaining('Nothing was changed'),
      })
    server.close()
    expect([
      await stage.version(),
      existsSync(`${stage.program}.old`),
      existsSync(`${stage.program}.new`),
    ]).toEqual(['1.0.0', false, false])
  })
  it(
    'leaves all as it is on a disk that has no room for the program, or goes back where it has none for the copy of the database',
    async () => {
      const backups = join(stage.data, 'backups')
      for (const [folder, size, reason] of [
        [join(stage.folder, 'bin'), '160m', /ENOSPC|no space/i],
        [backups, '64k', /1\.0\.0 serves again/],
      ] as const) {
        mkdirSync(folder, { recursive: true })
        const saved = existsSync(stage.program) && folder !== backups
        const copy = join(stage.folder, 'portreeve.kept')
        if (saved) copyFileSync(stage.program, copy)
        execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder])
        try {
          if (saved) copyFileSync(copy, stage.program)
          const { code, output } = await stage.run('upgrade', good)
          expect([code, output]).toEqual([1, expect.stringMatching(reason)])
          expect(existsSync(`${stage.program}.new`)).toBe(false)
          expect(await found()).toEqual(['1.0.0', schema])
        } finally {
          execFileSync('umount', ['--lazy', folder])
        }
        expect(await found()).toEqual(['1.0.0', schema])
      }
    },
    LIMIT_MS,
  )
  it(
    'goes back by itself from a program that does not start, with the database from before, and tells why',
    async () => {
      const { code, output } = await stage.run('upgrade', bad)
      expect([code, output]).toEqual([
        1,
        expect.stringMatching(/3\.0\.0 failed: It ended with the code 3;.* 1\.0\.0 serves again/),
      ])
      expect(await found()).toEqual(['1.0.0', schema])
    },
    LIMIT_MS,
  )
  it.each([
    ['a good one, once the database was copied', () => good, /before-upgrade-[^/]*\.db$/],
    ['one that does not start, while the way back begins', () => bad, /portreeve\.db\.back$/],
  ])(
    'that is killed with everything else during %s, ends with the old or the new',
    async (_name, place, at) => {
      // A supervisor that has seen no crash starts again at once.
      await stage.install(release('1.0.0'))
      const killer = stage.killAt((change) => at.test(change))
      await stage.run('upgrade', place())
      const ended = await eventually(
        'The end of the trial',
        async () => {
          const now = await found()
          return ['done', 'back'].includes(stage.trial()?.state ?? '') ? now : undefined
        },
        LIMIT_MS / 3,
      )
      killer.stop()
      expect(
        killer.changes.some((change) => at.test(change)),
        killer.changes.join(),
      ).toBe(true)
      const is_good = place() === good
      expect([['1.0.0', schema], ...(is_good ? [['2.0.0', schema + 1]] : [])]).toContainEqual(ended)
      expect(stage.database().projects).toEqual(['default'])
    },
    LIMIT_MS,
  )
  it(
    'brings another program into service, and says how long the API was away',
    async () => {
      const { code, output } = await stage.run('upgrade', good)
      expect([code, output]).toEqual([
        0,
        expect.stringMatching(/Portreeve 2\.0\.0 serves\. The API was away for [\d.]+ s/),
      ])
      expect([await found(), readFileSync(`${stage.program}.old`).length > 0]).toEqual([
        ['2.0.0', schema + 1],
        true,
      ])
      expect(await stage.run('upgrade', good)).toMatchObject({
        code: 0,
        output: expect.stringContaining('nothing was changed'),
      })
    },
    LIMIT_MS,
  )
  it(
    'does not bring an older program in: it refuses the newer database, and names the copy from before it',
    async () => {
      const { code, output } = await stage.run('upgrade', release('1.0.0'))
      expect([code, output]).toEqual([1, expect.stringContaining('2.0.0 serves again, with its database')])
      expect(await found()).toEqual(['2.0.0', schema + 1])
      const log = readFileSync(join(stage.folder, 'supervisor/portreeve.log'), 'utf8')
      expect(log).toMatch(/The database was written by a newer Portreeve.*before-migration-\d+\.db/)
    },
    LIMIT_MS,
  )
})
