import { describe, expect, it } from 'vitest'
import { importsOf, readSources } from './sources.ts'

/** Folders from the ground up: a file imports from its own rank or below. */
const RANKS: readonly (readonly [pattern: RegExp, rank: number])[] = [
  [/^server\/kernel\//, 0],
  [/^server\/platform\//, 1],
  // A reader of a format, which knows no domain.
  [/^server\/compose\//, 1],
  [/^server\/http\//, 3],
  [/^server\/start\//, 4],
  [/^server\/(plugins|middleware)\//, 5],
  [/^server\/[a-z-]+\//, 2],
  [/^server\/[a-z-]+$/, 4],
  [/^(routes|tasks|cli)\//, 5],
]
const rankOf = (path: string) => RANKS.find(([pattern]) => pattern.test(path.replace(/\.ts$/, '')))?.[1]
const domainOf = (path: string) => (rankOf(path) === 2 ? path.split('/')[1] : undefined)
/** Parts of a domain that others may know: its words, what it tells, and plain facts. */
const OPEN_PARTS =
  /\/((?:[a-z-]+-)?schema|events|plan|base-images|resolved|compose\/(parse|main-service)|project-file\/read)$/

const sources = readSources(['server', 'routes', 'tasks', 'cli'])
const imports = sources.flatMap((source) => importsOf(source).map((one) => ({ from: source.path, ...one })))

describe('imports', () => {
  it('only go down: routes, tasks, plugins, then composition, http, domains, platform, kernel', () => {
    const up = imports.filter(
      ({ from, target }) => target?.startsWith('server/') && rankOf(target)! > rankOf(from)!,
    )
    expect(up.map(({ from, target }) => `${from} -> ${target}`)).toEqual([])
  })
  it('of one domain by another reach its schema and events; a value of its inside comes through the composition', () => {
    const inside = imports.filter(({ from, target, type_only }) => {
      const [own, other] = [domainOf(from), target === undefined ? undefined : domainOf(target)]
      return own && other && own !== other && !type_only && !OPEN_PARTS.test(target!)
    })
    expect(inside.map(({ from, target }) => `${from} -> ${target}`)).toEqual([])
  })
  it("never reach another domain's repository, not even its types", () => {
    const inside = imports.filter(
      ({ from, target }) =>
        target &&
        domainOf(from) &&
        domainOf(target) &&
        domainOf(from) !== domainOf(target) &&
        /repository$/.test(target),
    )
    expect(inside.map(({ from, target }) => `${from} -> ${target}`)).toEqual([])
  })
  it('keep the types of the HTTP library, of Nitro and of the engine client out of the domains', () => {
    const foreign = imports.filter(
      ({ from, specifier }) => rankOf(from)! <= 2 && /^(h3|nitropack|crossws)(\/|$)/.test(specifier),
    )
    expect(foreign.map(({ from, specifier }) => `${from} -> ${specifier}`)).toEqual([])
    const engine = imports.filter(
      ({ from, specifier }) =>
        /^(dockerode|docker-modem)$/.test(specifier) &&
        rankOf(from)! <= 3 &&
        !/^server\/platform\/(engine|ingress)\//.test(from),
    )
    expect(engine.map(({ from }) => from)).toEqual([])
  })
  it('leave the environment, the clock and the console to the kernel and the composition', () => {
    const reads = sources.filter(
      ({ path, text }) =>
        rankOf(path) === 2 && /process\.env|Date\.now\(\)|new Date\(\)|console\./.test(text),
    )
    expect(reads.map(({ path }) => path)).toEqual([])
  })
  it('leave the look-up of names to platform/dns, where none hangs on a thread that all of them share', () => {
    const threaded = sources.filter(
      ({ path, text }) =>
        path.startsWith('server/') && /\b(lookup\b[^}]*\}\s*from\s*'node:dns|dns\.lookup\()/.test(text),
    )
    expect(threaded.map(({ path }) => path)).toEqual([])
  })
  it('leave the database to the kernel: a route holds no SQL, no try and no loop', () => {
    const busy = sources.filter(
      ({ path, text }) =>
        path.startsWith('routes/api/') &&
        /\bSELECT\b|\bINSERT\b|\bUPDATE\b.*\bSET\b|\btry\s*\{|\bfor\s*\(|\bwhile\s*\(|\.sql\(/.test(text),
    )
    expect(busy.map(({ path }) => path)).toEqual([])
  })
  it('go in no circle, types included', () => {
    const targets = new Map<string, string[]>()
    for (const { from, target } of imports) {
      const file = from.replace(/\.ts$/, '')
      if (target) targets.set(file, [...(targets.get(file) ?? []), target])
    }
    const clear = new Set<string>()
    /** A way from a file back to itself or to one that led to it. */
    const circle = (file: string, way: readonly string[]): string | undefined => {
      if (way.includes(file)) return [...way.slice(way.indexOf(file)), file].join(' -> ')
      if (clear.has(file)) return undefined
      for (const target of targets.get(file) ?? []) {
        const found = circle(target, [...way, file])
        if (found) return found
      }
      clear.add(file)
      return undefined
    }
    expect([...targets.keys()].flatMap((file) => circle(file, []) ?? [])).toEqual([])
  })
  it('cover every file', () => {
    expect(sources.filter(({ path }) => rankOf(path) === undefined).map(({ path }) => path)).toEqual([])
    expect(sources.length).toBeGreaterThan(100)
  })
})
