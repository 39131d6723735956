import { describe, expect, it } from 'vitest'
import type { PushEvent } from '#server/webhooks/forges/forge'
import { hasSkipMarker, isWatched, refusePush, touchesNothing } from '#server/webhooks/push-rules'
import { isSameRepository } from '#server/webhooks/repository-address'

const push = (change: Partial<PushEvent> = {}): PushEvent => ({
  kind: 'push',
  ref: 'branch',
  name: 'main',
  sha: 'a'.repeat(40),
  message: 'Mend the cart',
  changed: ['src/cart.ts'],
  default_branch: 'main',
  repository: [],
  ...change,
})
const app = {
  auto_deploy: true,
  branch: 'main',
  watch_paths: [] as string[],
  last_branch: null as string | null,
}
const refused = (event: PushEvent, target: typeof app | (Omit<typeof app, 'branch'> & { branch: null })) =>
  refusePush(event, target, touchesNothing(event, target.watch_paths))

describe('a push', () => {
  it('to the branch of the app deploys it', () => expect(refused(push(), app)).toBeUndefined())
  it('to the default branch deploys an app that names none', () => {
    expect(refused(push(), { ...app, branch: null })).toBeUndefined()
    expect(refused(push({ name: 'feature' }), { ...app, branch: null })).toMatch(/deployed from main/)
  })
  it('of a forge that does not name the default branch deploys the branch that was built before, and no other', () => {
    const to = (name: string) => push({ name, default_branch: undefined })
    const follows = { ...app, branch: null, last_branch: 'trunk' }
    expect(refused(to('trunk'), follows)).toBeUndefined()
    expect(refused(to('feature'), follows)).toMatch(/deployed from trunk/)
    expect(refused(to('feature'), { ...follows, last_branch: null })).toMatch(/is not known/)
  })
  it.each([
    ['of a tag', push({ ref: 'tag', name: 'v1' }), app],
    ['that deletes the branch', push({ sha: null }), app],
    ['to another branch', push({ name: 'feature' }), app],
    ['while auto_deploy is off', push(), { ...app, auto_deploy: false }],
    ['with a skip marker', push({ message: 'docs [skip ci]' }), app],
    ['that touches nothing watched', push({ changed: ['docs/a.md'] }), { ...app, watch_paths: ['src/**'] }],
  ])('%s is refused with a sentence', (_, event, target) => {
    expect(refused(event, target)).toMatch(/^[A-Za-z_].+\.$/)
  })
  it('whose files are not told deploys, since it may touch what is watched', () => {
    expect(refused(push({ changed: undefined }), { ...app, watch_paths: ['src/**'] })).toBeUndefined()
  })
  it('of very many files deploys without a look at each of them', () => {
    const changed = Array.from({ length: 100_000 }, (_, at) => `docs/${at}.md`)
    expect(refused(push({ changed }), { ...app, watch_paths: ['src/**'] })).toBeUndefined()
  })
})

describe('watch paths', () => {
  it.each([
    ['src/cart.ts', ['src/**'], true],
    ['src/cart.ts', ['src'], true],
    ['src/cart.ts', ['/src/'], true],
    ['srcs/cart.ts', ['src'], false],
    ['package.json', ['*.json', 'src/**'], true],
    ['docs/readme.md', ['!docs/**'], false],
    ['src/a.ts', ['!docs/**'], true],
    ['src/a.test.ts', ['src/**', '!**/*.test.ts'], false],
    ['apps/web/index.ts', ['apps/{web,api}/**'], true],
    ['apps/api/a.js', ['apps/{web,{api,docs}}/*.{ts,js}'], true],
    ['apps/shop/a.js', ['apps/{web,{api,docs}}/*.{ts,js}'], false],
    ['.github/workflows/a.yml', ['**/*.yml'], true],
    ['a', ['[z-a]'], false],
    // Patterns and names for which expressions try every way to match.
    ['a'.repeat(200), [`${'*a'.repeat(100)}b`], false],
    [`${'a/'.repeat(100)}b`, [`${'**/a/'.repeat(40)}x`], false],
    ['a'.repeat(40), ['+(a|aa|aaa)b'], false],
    ['b', ['{a,b}'.repeat(40)], false],
    ['a'.repeat(20_000), ['*a*b'], false],
    ['a/'.repeat(5_000), ['*a**/b', '**/x*b'], false],
  ])('%s with %j: %s', (file, patterns, watched) => expect(isWatched([file], patterns)).toBe(watched))
})

it.each([
  ['files', ['a'.repeat(200_000)], Array.from({ length: 100 }, () => `${'*a'.repeat(100)}b`)],
  ['wildcards', ['a'.repeat(6_000)], ['**a'.repeat(100)]],
  ['patterns', ['b'], Array.from({ length: 100 }, () => `${'a'.repeat(150)}{${','.repeat(60)}}`)],
  ['many apps', ['b'], Array.from({ length: 100 }, () => 'ab'.repeat(128))],
])('what takes too long to compare, by its %s, is taken to be watched', (_, files, patterns) => {
  expect(isWatched(files, patterns)).toBe(true)
})

describe('skip markers', () => {
  it.each(['[skip ci] words', 'words [ci skip]', '[skip deploy]', '[no ci]', 'words\n\nskip-checks: true'])(
    'in %j are seen',
    (message) => expect(hasSkipMarker(message)).toBe(true),
  )
  it.each(['skip ci', 'Describe [skip]', 'about skip-checks: true words'])('%j is none', (message) =>
    expect(hasSkipMarker(message)).toBe(false),
  )
})

describe('one repository', () => {
  it.each([
    ['https://github.com/Team/Shop.git', 'git@github.com:team/shop.git', true],
    ['ssh://git@git.example.com:2222/team/shop.git', 'https://git.example.com/team/shop', true],
    ['https://github.com/team/shop', 'https://github.com/team/shop-2', false],
    ['https://github.com/team/shop', 'https://gitlab.com/team/shop', false],
    ['https://github.com/team/shop', 'not an address', false],
  ])('%s and %s: %s', (git_url, told, same) => expect(isSameRepository(git_url, [told])).toBe(same))
  it('an address of a million slashes, which somebody tells to hold up everybody, is none', () => {
    const told = `https://git.example.com/team${'/'.repeat(1_000_000)}shop`
    expect(isSameRepository('https://git.example.com/team/shop', [told, `${told}.git`])).toBe(false)
  })
})
