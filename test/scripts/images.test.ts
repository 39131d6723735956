import { describe, expect, test } from 'vitest'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { allBaseImages } from '#server/builds/base-images'
import { ENGINES } from '#server/databases/engines'
import { EDGE_IMAGE } from '#server/platform/ingress/image'
import { candidateSources, parseRepositories } from '../../scripts/images/debian.ts'
import { judgePull, type Docker, type PullOutcome, type StoredImage } from '../../scripts/images/docker.ts'
import { wantedImages } from '../../scripts/images/families.ts'
import { parseOptions, select, UsageError } from '../../scripts/images/options.ts'
import { pool } from '../../scripts/images/pool.ts'
import { outcomeLine, provide, type Provision } from '../../scripts/images/provide.ts'
import { nearestVersion, type Wanted } from '../../scripts/images/recipe.ts'

const root = join(import.meta.dirname, '..', '..')

describe('which images there are', () => {
  const desired = wantedImages()
  const databases = ENGINES.flatMap(({ image, lines }) => lines.map((line) => `${image}:${line}`))
  test('every image that a generated Dockerfile can name is known, the edge and the databases', () => {
    expect(desired.map((one) => one.image).sort()).toEqual(
      [EDGE_IMAGE, ...allBaseImages(), ...databases].sort(),
    )
  })
  test('every recipe has its Dockerfile, or the script that makes the system itself', () => {
    for (const { recipe } of desired) {
      if (!recipe) continue
      expect(readdirSync(join(root, 'images', recipe.context))).toContain(
        recipe.base === undefined ? 'customize.sh' : 'Dockerfile',
      )
    }
  })
  test('two different recipes never share a name, because the name is the cache', () => {
    const byName = new Map<string, string>()
    for (const { recipe } of desired) {
      if (!recipe) continue
      const facts = JSON.stringify({ ...recipe, version: recipe.version.command })
      expect(byName.get(recipe.name) ?? facts).toBe(facts)
      byName.set(recipe.name, facts)
    }
  })
  test('the usual set covers the default version of node, python, go, php, java, ruby, the static server and the edge', () => {
    const usual = desired.filter((one) => one.usual).map((one) => one.family)
    for (const family of [
      'haproxy',
      'node',
      'python',
      'go',
      'php',
      'jdk',
      'jre',
      'ruby',
      'static',
      'debian',
      'composer',
    ]) {
      expect(
        desired.some((one) => one.family === family && one.usual && one.family_default),
        family,
      ).toBe(true)
      expect(usual).toContain(family)
    }
  })
  test('a binary that is linked on the build image finds its C library on the runtime image of the same release', () => {
    for (const one of desired)
      if (/bookworm/.test(one.image) && one.recipe?.base) expect(one.recipe.base, one.image).toBe('bookworm')
  })
  test("no recipe names a host: mirror and registry are the machine's own", () => {
    const folders = ['images', 'scripts'].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name)),
    )
    for (const file of [...folders, join(root, 'install.sh'), join(root, '.ci', 'run')]) {
      expect(readFileSync(file, 'utf8'), file).not.toMatch(
        /\b(debian\.org|npmjs\.org|docker\.io\/|registry-1\.)/,
      )
    }
  })
})

describe('the version that stands in', () => {
  test.each([
    ['3.12', ['3.11', '3.13'], '3.13'],
    ['3.9', ['3.11', '3.13'], '3.11'],
    ['3.14', ['3.11', '3.13'], '3.13'],
    ['3.13', ['3.11', '3.13'], '3.13'],
    ['2.7', ['3.11'], undefined],
  ])('%s out of %j is %s', (asked, available, chosen) => {
    expect(nearestVersion(asked, available)).toBe(chosen)
  })
  test('a language that runs old programs may stand in with another major version', () => {
    expect(nearestVersion('11', ['17', '21'], 'any')).toBe('17')
    expect(nearestVersion('11', ['17', '21'])).toBeUndefined()
  })
})

describe('the mirror', () => {
  const REPOSITORIES = parseRepositories(
    [
      'http://mirror.test/debian/|bookworm|main',
      'http://mirror.test/debian/|bookworm|contrib',
      'http://mirror.test/debian/|bookworm-updates|main',
      'http://secure.test/debian-security/|bookworm-security|main',
      'http://other.test/|./|',
      '',
    ].join('\n'),
  )
  test('another suite comes from the same mirrors, with its updates and security fixes', () => {
    expect(candidateSources(REPOSITORIES, 'trixie')).toEqual([
      { uri: 'http://mirror.test/debian/', release: 'trixie' },
      { uri: 'http://mirror.test/debian/', release: 'trixie-updates' },
      { uri: 'http://secure.test/debian-security/', release: 'trixie-security' },
    ])
  })
  test('a machine without a Debian repository has none', () => {
    expect(candidateSources(parseRepositories('http://other.test/|./|\n'), 'trixie')).toEqual([])
  })
})

describe('the command line', () => {
  test('says what is wrong with a call', () => {
    for (const args of [
      ['--nope'],
      ['--jobs', '0'],
      ['--jobs', 'x'],
      ['--only', ','],
      ['--all', '--only', 'node'],
      ['--mirror', 'ftp://x'],
      ['node'],
    ]) {
      expect(() => parseOptions(args), args.join(' ')).toThrow(UsageError)
    }
    expect(() => select(wantedImages(), { all: false, only: ['nodejs'] })).toThrow(
      /no family and no image called "nodejs"/,
    )
  })
  test('a family means its usual versions, and one without any its default version', () => {
    const of = (...only: string[]): string[] =>
      select(wantedImages(), { all: false, only }).map((one) => one.image)
    expect(of('node')).toEqual(['node:24-slim', 'node:22-slim', 'node:20-slim'])
    expect(of('rust')).toEqual(['rust:1-bookworm'])
    expect(of('python:3.9-slim', 'haproxy')).toEqual(['python:3.9-slim', EDGE_IMAGE])
  })
  test('everything means everything that can be made', () => {
    expect(select(wantedImages(), { all: true, only: [] }).every((one) => one.recipe !== undefined)).toBe(
      true,
    )
  })
})

describe('a failed pull', () => {
  test.each<[string, PullOutcome]>([
    [
      'Error response from daemon: Get "https://registry.test/v2/": dial tcp: lookup registry.test on 10.0.0.1:53: no such host',
      'unreachable',
    ],
    [
      'Error response from daemon: Get "https://registry.test/v2/": net/http: request canceled while waiting for connection',
      'unreachable',
    ],
    [
      'Error response from daemon: Get "https://registry.test/v2/": dial tcp 10.0.0.1:443: connect: connection refused',
      'unreachable',
    ],
    [
      'Error response from daemon: manifest for node:99-slim not found: manifest unknown: manifest unknown',
      'refused',
    ],
    ['Error response from daemon: pull access denied for nope, repository does not exist', 'refused'],
  ])('%s', (said, outcome) => {
    expect(judgePull(said)).toBe(outcome)
  })
})

/** An engine in memory: images by name, and what its registry would say. */
function fakeEngine(images: Record<string, StoredImage>, registry: (image: string) => PullOutcome) {
  const pulls: string[] = []
  const made: string[] = []
  const docker = {
    find: async (image: string) => images[image],
    pull: async (image: string) => {
      pulls.push(image)
      const outcome = registry(image)
      if (outcome === 'pulled') images[image] = { id: image, size_bytes: 1e6, labels: {} }
      return outcome
    },
    tag: async (image: string, name: string) => {
      images[name] = images[image]!
    },
  } as Docker
  const make = async (desired: Wanted): Promise<string> => {
    if (desired.image === 'node:20-slim') throw new Error('no package')
    made.push(desired.recipe!.name)
    images.made = {
      id: 'made',
      size_bytes: 2e6,
      labels: { 'portreeve.stand-in': 'true', 'portreeve.stand-in.version': '22.1.0' },
    }
    return 'made'
  }
  const said: string[] = []
  const provision: Provision = {
    docker,
    make,
    pull: true,
    rebuild: false,
    jobs: 2,
    say: (line) => said.push(line),
  }
  return { provision, pulls, made, said, images }
}

describe('providing images', () => {
  const chosen = select(wantedImages(), { all: false, only: ['node'] })
  const results = (outcomes: { image: string; result: string }[]): string[] =>
    outcomes.map((outcome) => `${outcome.image} ${outcome.result}`)

  test('a registry is asked once when it cannot be reached, and the rest is made', async () => {
    const engine = fakeEngine({}, () => 'unreachable')
    const outcomes = await provide(chosen, engine.provision)
    expect(engine.pulls).toEqual(['node:24-slim'])
    expect(results(outcomes)).toEqual(['node:24-slim made', 'node:22-slim made', 'node:20-slim failed'])
    expect(engine.said.join('\n')).toContain('No container registry can be reached')
  })
  test('an image that the registry does not have is made, the others are pulled', async () => {
    const engine = fakeEngine({}, (image) => (image === 'node:22-slim' ? 'refused' : 'pulled'))
    expect(results(await provide(chosen, engine.provision))).toEqual([
      'node:24-slim pulled',
      'node:22-slim made',
      'node:20-slim pulled',
    ])
  })
  test('what exists is kept, without a pull and without a look at the registry', async () => {
    const there: StoredImage = { id: 'x', size_bytes: 1, labels: {} }
    const engine = fakeEngine(
      { 'node:24-slim': there, 'node:22-slim': there, 'node:20-slim': there },
      () => 'pulled',
    )
    expect(results(await provide(chosen, engine.provision))).toEqual([
      'node:24-slim kept',
      'node:22-slim kept',
      'node:20-slim kept',
    ])
    expect(engine.pulls).toEqual([])
  })
  test('a rebuild renews stand-ins and leaves real images alone', async () => {
    const real: StoredImage = { id: 'x', size_bytes: 1, labels: {} }
    const stand_in: StoredImage = {
      ...real,
      labels: { 'portreeve.stand-in': 'true', 'portreeve.stand-in.version': '22.0.0' },
    }
    const engine = fakeEngine(
      { 'node:24-slim': real, 'node:22-slim': stand_in, 'node:20-slim': real },
      () => 'unreachable',
    )
    const outcomes = await provide(chosen, { ...engine.provision, pull: false, rebuild: true })
    expect(results(outcomes)).toEqual(['node:24-slim kept', 'node:22-slim made', 'node:20-slim kept'])
    expect(engine.made).toEqual(['node-22'])
  })
  test('a line about a stand-in tells the real version', async () => {
    expect(
      outcomeLine({
        image: 'python:3.12-slim',
        result: 'made',
        stand_in_version: '3.13.5',
        size_bytes: 224e6,
        seconds: 9.84,
      }),
    ).toBe('made    python:3.12-slim                stand-in, really 3.13.5, 224 MB, 9.8 s')
  })
})

test.each([1, 2])(
  'a pool of %i runs everything, never more at a time than allowed, and reports a failure at the end',
  async (limit) => {
    let running = 0,
      most = 0
    const done: number[] = []
    const work = pool([1, 2, 3, 4, 5], limit, async (item) => {
      most = Math.max(most, ++running)
      await Promise.resolve()
      running--
      done.push(item)
      if (item === 2) throw new Error('two')
    })
    await expect(work).rejects.toThrow('two')
    expect(most).toBe(limit)
    expect(done.sort()).toEqual([1, 2, 3, 4, 5])
  },
)
