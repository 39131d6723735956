import { createHash } from 'node:crypto'
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readdirSync } from 'node:fs'
import { readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync, writeSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { openDb } from '#server/kernel/db'
import { confirmTrial, failTrial, guardStart } from '../../cli/upgrade/guard.ts'
import { fetchProgram, findSource, placeProgram } from '../../cli/upgrade/place.ts'
import { upgrade as upgradeHere } from '../../cli/upgrade/upgrade.ts'
import { readTrial, type Trial } from '../../cli/upgrade/trial.ts'

let folder: string
let data: string
let program: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ptr-upgrade-'))
  data = join(folder, 'data')
  program = join(folder, 'portreeve')
  mkdirSync(data)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** What a program of a version does to the database at its start. */
const open = () => openDb(join(data, 'portreeve.db'))
function migrateTo(schema: number): void {
  const db = open()
  db.raw.exec(`CREATE TABLE IF NOT EXISTS rows (at INTEGER) STRICT; INSERT INTO rows VALUES (${schema})`)
  db.raw.pragma(`user_version = ${schema}`)
  db.close()
}
function schema(): number {
  const db = open()
  try {
    return db.raw.pragma('user_version', { simple: true }) as number
  } finally {
    db.close()
  }
}
const trial = (): Trial => ({
  state: 'placed',
  from_version: '1.0.0',
  to_version: '2.0.0',
  to_build: 'new',
  program,
  old_program: `${program}.old`,
  database_copy: null,
  attempts: 0,
  reason: null,
})

/** One start by whatever keeps the program running: the program in place runs, and may be ended at a step. */
function startOnce(is_good: boolean, at?: (step: string) => void): string {
  const build = readFileSync(program, 'utf8')
  if (guardStart(data, build, at) === 'back') return 'back'
  if (build === 'old') return 'old serves'
  migrateTo(2)
  at?.('serve: migrated')
  if (!is_good) {
    failTrial(data, build, 'It ended with the code 1.')
    return 'ended'
  }
  confirmTrial(data, build)
  return 'new serves'
}
class Killed extends Error {}

/** Runs an upgrade to its end, starting again after each kill, as a supervisor does. */
function upgrade(is_good: boolean, kill_at: number): { steps: string[]; end: string } {
  const steps: string[] = []
  const at = (step: string) => {
    steps.push(step)
    if (steps.length === kill_at) throw new Killed()
  }
  writeFileSync(program, 'old')
  writeFileSync(`${program}.new`, 'new')
  migrateTo(1)
  const survive = <T>(work: () => T): T | undefined => {
    try {
      return work()
    } catch (error) {
      if (!(error instanceof Killed)) throw error
      return undefined
    }
  }
  survive(() => placeProgram(data, trial(), at))
  let end: string | undefined
  for (let starts = 0; starts < 8 && end !== 'old serves' && end !== 'new serves'; starts++)
    end = survive(() => startOnce(is_good, at))
  return { steps, end: end ?? 'nothing serves' }
}

describe('an upgrade', () => {
  it('says first to a user who may not replace the program that it needs root', async () => {
    mkdirSync(join(data, 'upgrade'))
    const serving = { pid: process.pid, program: join(folder, 'not-theirs/portreeve'), version: '1.0.0' }
    writeFileSync(join(data, 'upgrade/serving.json'), JSON.stringify(serving))
    const user = vi.spyOn(process, 'getuid').mockReturnValue(1000)
    const call = upgradeHere({ PORTREEVE_DATA_DIR: data }, '/new/portreeve', {})
    await expect(call).rejects.toThrow('Run this as root')
    user.mockRestore()
  })
  it('says that there is no installation, and what to do, where there is none', async () => {
    const call = upgradeHere({ PORTREEVE_DATA_DIR: data }, '/new/portreeve', {})
    await expect(call).rejects.toThrow(`There is no installation in ${data}`)
    await expect(call).rejects.toThrow('portreeve setup')
  })
  it('ends with the new program and its schema, and keeps the old program and a copy of the database', () => {
    expect(upgrade(true, 0).end).toBe('new serves')
    expect([readFileSync(program, 'utf8'), readFileSync(`${program}.old`, 'utf8'), schema()]).toEqual([
      'new',
      'old',
      2,
    ])
    expect(readdirSync(join(data, 'backups'))).toEqual(['before-upgrade-to-2.0.0-new.db'])
    expect(readTrial(data)?.state).toBe('done')
    expect(guardStart(data, 'new')).toBe('go')
  })
  it('keeps the newest copies of the database, whatever the versions are called', () => {
    const copies = join(data, 'backups')
    mkdirSync(copies)
    const before = ['1.10.0-c', '1.9.0-b', '1.8.0-a'].map((name) => `before-upgrade-to-${name}.db`)
    for (const [days, name] of before.entries()) {
      writeFileSync(join(copies, name), '')
      const then = new Date(Date.now() - (days + 1) * 86_400_000)
      utimesSync(join(copies, name), then, then)
    }
    upgrade(true, 0)
    expect(readdirSync(copies).toSorted()).toEqual(
      ['before-upgrade-to-2.0.0-new.db', before[0], before[1]].toSorted(),
    )
  })
  it('goes back by itself to the old program and the old database when the new one does not become ready, and tells why', () => {
    expect(upgrade(false, 0).end).toBe('old serves')
    expect([readFileSync(program, 'utf8'), schema()]).toEqual(['old', 1])
    expect(readTrial(data)).toMatchObject({ state: 'back', reason: 'It ended with the code 1.' })
  })
  it('leaves no name beside the program after one that went back, when the file from before has two', () => {
    upgrade(false, 0)
    expect(upgrade(true, 0).end).toBe('new serves')
    expect(readdirSync(folder).toSorted()).toEqual(['data', 'portreeve', 'portreeve.old'])
  })
  it.each([true, false])(
    'that is killed at any step ends with the old or the new, with the database that fits (good: %s)',
    (is_good) => {
      const { steps } = upgrade(is_good, 0)
      expect(steps.length).toBeGreaterThan(is_good ? 5 : 9)
      for (let kill_at = 1; kill_at <= steps.length; kill_at++) {
        rmSync(data, { recursive: true })
        mkdirSync(data)
        rmSync(`${program}.old`, { force: true })
        const { end } = upgrade(is_good, kill_at)
        const found = [end, readFileSync(program, 'utf8'), schema()]
        const allowed = [['old serves', 'old', 1], ...(is_good ? [['new serves', 'new', 2]] : [])]
        expect(allowed, `killed at "${steps[kill_at - 1]}"`).toContainEqual(found)
      }
    },
  )
  it('gives up a program that is killed twice before it is ready', () => {
    writeFileSync(program, 'old')
    writeFileSync(`${program}.new`, 'new')
    migrateTo(1)
    placeProgram(data, trial())
    expect([1, 2].map(() => guardStart(data, 'new'))).toEqual(['try', 'try'])
    migrateTo(2)
    expect(guardStart(data, 'new')).toBe('back')
    expect([readFileSync(program, 'utf8'), schema()]).toEqual(['old', 1])
    expect(readTrial(data)?.reason).toBe('It ended twice before it was ready.')
  })
  it('goes back where there is no room for one more copy of the database', () => {
    writeFileSync(program, 'old')
    writeFileSync(`${program}.new`, 'new')
    migrateTo(1)
    placeProgram(data, trial())
    expect(guardStart(data, 'new')).toBe('try')
    migrateTo(2)
    failTrial(data, 'new', 'The disk is full.')
    // Nothing can be copied there, whoever asks.
    symlinkSync('/dev/full', join(data, 'portreeve.db.back'))
    expect(guardStart(data, 'new')).toBe('back')
    expect([readFileSync(program, 'utf8'), schema(), readTrial(data)?.state]).toEqual(['old', 1, 'back'])
  })
  it('leaves nothing of a copy of the database that breaks off: it may have filled the disk', () => {
    writeFileSync(program, 'old')
    writeFileSync(`${program}.new`, 'new')
    const db = open()
    db.raw.exec('CREATE TABLE rows (text TEXT) STRICT')
    const insert = db.raw.prepare('INSERT INTO rows VALUES (?)')
    db.tx(() => {
      for (let n = 0; n < 2000; n += 1) insert.run('x'.repeat(500))
    })
    db.close()
    const file = openSync(join(data, 'portreeve.db'), 'r+')
    writeSync(file, Buffer.alloc(4096, 255), 0, 4096, 4096 * 200)
    closeSync(file)
    placeProgram(data, trial())
    expect(guardStart(data, 'new')).toBe('back')
    expect(readTrial(data)?.reason).toMatch(/^The database could not be copied: /)
    expect(readdirSync(join(data, 'backups'))).toEqual([])
  })
  it('goes back at once, with the database untouched, where there is no room for a copy of it', () => {
    writeFileSync(program, 'old')
    writeFileSync(`${program}.new`, 'new')
    migrateTo(1)
    placeProgram(data, trial())
    // A file in the place of the folder: nothing can be written there, whoever asks.
    writeFileSync(join(data, 'backups'), '')
    expect(guardStart(data, 'new')).toBe('back')
    expect([readFileSync(program, 'utf8'), schema(), readTrial(data)?.state]).toEqual(['old', 1, 'back'])
    expect(readTrial(data)?.reason).toMatch(/^The database could not be copied: /)
  })
})

describe('the program of an upgrade', () => {
  const bytes = 'a program'
  const digest = createHash('sha256').update(bytes).digest('hex')
  let server: Server
  let url: string
  beforeEach(async () => {
    server = createServer((request, response) => {
      if (request.url === '/portreeve') return void response.end(bytes)
      if (request.url === '/portreeve.sha256') return void response.end(`${digest}  portreeve\n`)
      if (request.url === '/cut') {
        response.writeHead(200, { 'content-length': 1000 })
        response.write(bytes)
        return void setImmediate(() => response.destroy())
      }
      response.writeHead(404).end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as { port: number }).port}`
  })
  afterEach(() => new Promise((resolve) => server.close(resolve)))
  const fetchFrom = async (from: string, sha256?: string) =>
    fetchProgram(await findSource(from, sha256), program)

  it('is not taken over a line that others can change, unless its checksum came another way', async () => {
    const open = 'http://portreeve.invalid/portreeve'
    await expect(findSource(open)).rejects.toThrow(
      'http://portreeve.invalid is asked without encryption: whoever is on the way could send another program with a checksum that fits. Use https, or give --sha256.',
    )
    expect((await findSource(open, digest)).sha256).toBe(digest)
  })
  it('comes from a file, a release folder or an address, each with its checksum', async () => {
    const release = join(folder, 'release')
    mkdirSync(release)
    writeFileSync(join(release, 'portreeve'), bytes)
    writeFileSync(join(release, 'portreeve.sha256'), `${digest}  portreeve\n`)
    for (const [from, sha256] of [
      [release],
      [join(release, 'portreeve')],
      [`${url}/portreeve`],
      [`${url}/portreeve`, digest.toUpperCase()],
    ] as const) {
      expect(readFileSync(await fetchFrom(from, sha256), 'utf8')).toBe(bytes)
      rmSync(`${program}.new`)
    }
  })
  it('is refused when it is damaged, cut off, missing or without a checksum, and nothing of it stays', async () => {
    writeFileSync(join(folder, 'bare'), bytes)
    await expect(fetchFrom(join(folder, 'bare'))).rejects.toThrow('bare.sha256 is missing')
    await expect(fetchFrom(join(folder, 'bare'), '0'.repeat(64))).rejects.toThrow('damaged or another one')
    await expect(fetchFrom(`${url}/cut`, digest)).rejects.toThrow()
    await expect(fetchFrom(`${url}/none`)).rejects.toThrow('answered 404')
    await expect(fetchFrom(join(folder, 'nowhere'))).rejects.toThrow('There is nothing at')
    expect(existsSync(`${program}.new`)).toBe(false)
  })
})
