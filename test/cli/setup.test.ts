import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openDb } from '#server/kernel/db'
import { createMeta } from '#server/kernel/meta'
import { migrate } from '#server/kernel/migrate'
import { edgeName } from '#server/platform/ingress/edge-name'
import { ROOT } from '#test/support/routes'
import { readMigrations } from '../../scripts/read-migrations.ts'
import { objections, readFacts } from '../../cli/setup/remote.ts'
import { renderUnit, requireOwnUnit } from '../../cli/setup/service.ts'
import { mergeSettings, readSettings, storeSettings } from '../../cli/setup/settings-file.ts'
import { remains } from '../../cli/setup/setup.ts'
import { parseTarget, quote } from '../../cli/setup/ssh.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ptr-setup-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

describe('settings of an installation', () => {
  it('are read back as they were written, whatever is in them, and are for root alone', () => {
    const path = join(folder, 'portreeve.env')
    const settings = { PORT: '9000', PORTREEVE_ADMIN_PASSWORD: 'a "b" $c `d` \\e %f' }
    const changed = [storeSettings(path, settings), storeSettings(path, settings)]
    expect(changed.map(({ is_changed }) => is_changed)).toEqual([true, false])
    expect([readSettings(path), statSync(path).mode & 0o777]).toEqual([settings, 0o600])
  })
  it('with which the server does not start are taken back', () => {
    const path = join(folder, 'portreeve.env')
    const first = storeSettings(path, { PORT: '9000' })
    expect(storeSettings(path, { PORT: '9001' }).takeBack()).toBe(true)
    expect(readSettings(path)).toEqual({ PORT: '9000' })
    expect([first.takeBack(), readSettings(path)]).toEqual([false, {}])
  })
  it('keep what was said before, take what is said now, and drop what is emptied', () => {
    const kept = { PORT: '9000', HOST: '127.0.0.1', PORTREEVE_BASE_DOMAIN: 'a.test' }
    const env = {
      HOST: '',
      PORTREEVE_BASE_DOMAIN: 'b.test',
      PATH: '/bin',
      PORTREEVE_BUILD: 'x',
      PORTREEVE_API_KEY: 'k',
    }
    expect(mergeSettings(kept, env)).toEqual({ PORT: '9000', PORTREEVE_BASE_DOMAIN: 'b.test' })
    expect(readSettings(join(folder, 'none'))).toEqual({})
  })
  it('that take more than a line are refused by name: no reader of the file would find them again', () => {
    expect(() => mergeSettings({}, { PORTREEVE_SECRET_KEY: 'first\nsecond' })).toThrow(
      'PORTREEVE_SECRET_KEY must be one line.',
    )
  })
})

describe('an uninstall', () => {
  it('names the folder of the data as a shell takes it: two words would be two folders that somebody removes', () => {
    const places = { program: '/p', data_link: '/d', settings: '/s', cache: '/c' }
    expect(remains({ ...places, data: "/srv/it's port reeve" }).at(-1)).toBe(
      String.raw`rm -r '/srv/it'\''s port reeve'`,
    )
    expect(remains({ ...places, data: '/var/lib/portreeve' }).at(-1)).toBe('rm -r /var/lib/portreeve')
  })
  it('names the folder of the data also where the database is damaged', () => {
    writeFileSync(
      join(folder, 'portreeve.db'),
      'no database at all, for more than one page of it'.repeat(200),
    )
    const lines = remains({ program: '/p', data_link: '/d', settings: '/s', cache: '/c', data: folder })
    expect(lines).toEqual([`docker rm -f ${edgeName(join(folder, 'ingress'))}`, `rm -r ${folder}`])
  })
  it('names what this installation has on the engine, and nothing of another one', () => {
    const db = openDb(join(folder, 'portreeve.db'))
    migrate(db, readMigrations(ROOT))
    createMeta(db).set('installation', 'a1b2')
    db.close()
    const lines = remains({ program: '/p', data_link: '/d', settings: '/s', cache: '/c', data: folder })
    const labelled = lines.filter((line) => line.includes(' --filter '))
    expect(labelled).toHaveLength(4)
    for (const line of labelled) expect(line).toContain('--filter label=portreeve.installation=a1b2 ')
    const edge = edgeName(join(folder, 'ingress'))
    expect(lines.slice(4)).toEqual([`docker rm -f ${edge}`, `rm -r ${folder}`])
    const stage = `DATA_DIR=$1 ROOT=${ROOT}; . "$ROOT/scripts/shell/run.sh"; say() { echo "$*"; }`
    const said = (DOCKER_HOST: string) =>
      execFileSync('bash', ['-c', `${stage}; show_remains "$(installation_name)"`, 'bash', folder], {
        env: { ...process.env, DOCKER_HOST },
      })
        .toString()
        .split('\n')
        .slice(1, -1)
    expect(said('')).toEqual(lines.map((line) => `  ${line}`))
    const engine = 'unix:///run/other.sock'
    const places = { program: '/p', data_link: '/d', settings: '/s', cache: '/c', data: folder }
    const there = remains(places, engine)
    expect(there).toEqual([`export DOCKER_HOST=${engine}`, ...lines])
    expect(said(engine)).toEqual(there.map((line) => `  ${line}`))
  })
})

describe('the unit', () => {
  it('may write to the data and to the folder of the program, so that an upgrade can go back, and to nothing else of the system', () => {
    const unit = renderUnit({
      data: '/srv/a b%',
      program: '/srv/a b%/program/portreeve',
      settings: '/srv/a b%/portreeve.env',
      cache: '/srv/a b%/program/unpacked',
    })
    expect(unit).toContain('ExecStart="/srv/a b%%/program/portreeve" serve')
    expect(unit).toContain(
      'ReadWritePaths="/srv/a b%%" "/srv/a b%%/program" "/srv/a b%%/program/unpacked" /sys/fs/cgroup /run',
    )
    expect(unit).toContain('"PORTREEVE_DATA_DIR=/srv/a b%%"')
    expect(unit).toContain('Restart=always')
  })
})

describe('the unit of another installation', () => {
  const places = (data: string) => ({
    data,
    program: '/p',
    settings: join(data, 'portreeve.env'),
    cache: '/c',
  })
  it('is not taken from it, which would serve an empty one in its place', () => {
    const unit = join(folder, 'portreeve.service')
    const own = places('/srv/100% ours')
    requireOwnUnit(own.settings, unit)
    writeFileSync(unit, renderUnit(own))
    requireOwnUnit(own.settings, unit)
    writeFileSync(unit, renderUnit(places('/srv/100% others')))
    expect(() => requireOwnUnit(own.settings, unit)).toThrow(
      'The unit portreeve.service is of the installation in /srv/100% others. Name that with --data-dir, or take it away first.',
    )
  })
})

describe('the unit of install.sh', () => {
  it('takes the same away from the service as this one', () => {
    const script = readFileSync(join(ROOT, 'scripts/shell/service.sh'), 'utf8')
    const fixed = script.match(
      /^(Protect|Restrict|Private|Lock|NoNew|System|UMask|Limit|KillMode|OOM)\w*=[\w.,~ -]+$/gm,
    )
    const unit = renderUnit({ data: '/d', program: '/d/p/portreeve', settings: '/d/e', cache: '/d/c' })
    expect(fixed!.length).toBeGreaterThan(14)
    expect(fixed!.filter((line) => !unit.split('\n').includes(line))).toEqual([])
  })
})

describe('another machine', () => {
  const good = {
    system: 'Linux',
    machine: 'x86_64',
    uid: 0,
    sudo: false,
    os: 'debian',
    memory_kib: 2 ** 21,
    disk_kib: 2 ** 24,
    time_s: 1_800_000_000,
    busy: '22 5432',
  }
  const against = (changes: Partial<typeof good>) =>
    objections({ ...good, ...changes }, [9000, 80, 443], 1_800_000_000, 'x64')
  it('is told everything that speaks against it, a sentence each, before anything is copied', () => {
    expect(against({})).toEqual([])
    expect(against({ os: 'ubuntu debian', uid: 1000, sudo: true })).toEqual([])
    expect(against({ system: 'FreeBSD', machine: 'aarch64', os: 'alpine' })).toHaveLength(3)
    expect(against({ uid: 1000 })[0]).toContain('sudo asks for a password')
    expect(against({ memory_kib: 1000, disk_kib: 1000 })).toHaveLength(2)
    expect(against({ time_s: 1_800_000_300 })[0]).toContain('300 s off')
    expect(against({ busy: '22 80 443' })[0]).toContain('Its ports 80, 443 are in use')
  })
  it('answers in lines of which others are passed over', () => {
    const output =
      'Welcome!\nsystem=Linux\nmachine=x86_64\nuid=0\nsudo=no\nos=debian\nmemory_kib=5\ndisk_kib=6\ntime_s=7\nbusy=22 80 \n'
    expect(readFacts(output)).toEqual({ ...good, memory_kib: 5, disk_kib: 6, time_s: 7, busy: '22 80' })
    expect(readFacts('')).toMatchObject({ system: '', uid: -1 })
  })
  it('is named as people write it', () => {
    expect(['root@203.0.113.7', 'a.b@host.example:2222', 'root@[2001:db8::1]:22'].map(parseTarget)).toEqual([
      { username: 'root', host: '203.0.113.7', port: 22 },
      { username: 'a.b', host: 'host.example', port: 2222 },
      { username: 'root', host: '2001:db8::1', port: 22 },
    ])
    for (const wrong of ['host', '-oProxyCommand=x@host', 'a@b c', 'a@'])
      expect(() => parseTarget(wrong)).toThrow('names no machine')
    expect(quote(`it's $HOME`)).toBe(`'it'\\''s $HOME'`)
  })
})
