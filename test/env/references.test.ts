import { describe, expect, it } from 'vitest'
import { createResolver, referencesIn, UnresolvedError } from '#server/env/references'

const resolver = (shared: Record<string, string>, secret: string[] = []) =>
  createResolver({
    shared: (key) =>
      Object.hasOwn(shared, key) ? { value: shared[key]!, secret: secret.includes(key) } : undefined,
    database: (name) => (name === 'orders' ? { DATABASE_URL: 'postgres://u:p@orders/db' } : undefined),
  })
const plain = (value: string) => ({ value, secret: false })

describe('references in a value', () => {
  it('are put in wherever they stand, also through several shared variables', () => {
    const resolve = resolver({
      HOST: 'example.com',
      URL: 'https://${{ project.HOST }}/${{project.PATH}}',
      PATH: 'a$&b',
    })
    expect(resolve(plain('at ${{ project.URL }}!'))).toEqual(plain('at https://example.com/a$&b!'))
  })
  it('make a secret of what takes one in, and of what a database offers', () => {
    const resolve = resolver({ OUTER: '${{ project.INNER }}', INNER: 'x' }, ['INNER'])
    expect([resolve(plain('${{ project.OUTER }}')), resolve(plain('${{ orders.DATABASE_URL }}'))]).toEqual([
      { value: 'x', secret: true },
      { value: 'postgres://u:p@orders/db', secret: true },
    ])
  })
  it.each([
    ['${{ project.GONE }}', /names project.GONE, which the project does not share/],
    ['${{ nowhere.DATABASE_URL }}', /no database nowhere/],
    ['${{ orders.GONE }}', /names orders.GONE; the database offers DATABASE_URL/],
    ['${{ project.toString }}', /does not share/],
    ['${{ orders.constructor }}', /the database offers/],
    ['${{ }}', /something else/],
    ['${{ project }}', /something else/],
  ])('that lead nowhere are told: %s', (value, message) => {
    expect(() => resolver({})(plain(value))).toThrow(UnresolvedError)
    expect(() => resolver({})(plain(value))).toThrow(message)
  })
  it('ask a database once, however many values name it: what it offers is sealed', () => {
    const asked: string[] = []
    const resolve = createResolver({
      shared: () => undefined,
      database(name) {
        asked.push(name)
        return name === 'orders' ? { PORT: '5432' } : undefined
      },
    })
    for (let count = 0; count < 3; count += 1) resolve(plain('${{orders.PORT}}${{ orders.PORT }}'))
    for (let count = 0; count < 2; count += 1) expect(() => resolve(plain('${{ gone.PORT }}'))).toThrow()
    expect(asked).toEqual(['orders', 'gone'])
  })
  it('that would become more than any memory holds are told, also when each alone would not', () => {
    const doubling = Object.fromEntries(
      Array.from({ length: 40 }, (_, at) => [`V${at}`, `\${{ project.V${at + 1} }}`.repeat(3)]),
    )
    const resolve = resolver({ ...doubling, V40: 'x'.repeat(10), LARGE: 'x'.repeat(100_000) })
    expect(() => resolve(plain('${{ project.V0 }}'))).toThrow(/more than 4 MB/)
    const each = resolver({ LARGE: 'x'.repeat(100_000) })
    const taken = () => Array.from({ length: 50 }, () => each(plain('${{ project.LARGE }}')))
    expect(taken).toThrow(/more than 4 MB/)
  })
  it('that lead from one variable to the next without an end in sight are told', () => {
    const chain = Object.fromEntries(
      Array.from({ length: 5000 }, (_, at) => [`V${at}`, `\${{ project.V${at + 1} }}`]),
    )
    const resolve = resolver({ ...chain, V5000: 'x' })
    expect(() => resolve(plain('${{ project.V0 }}'))).toThrow(/more than 50 variables/)
    // What was refused is no circle to the next one.
    expect(resolve(plain('${{ project.V4960 }}'))).toEqual(plain('x'))
  })
  it('in a circle are told with the way round', () => {
    const resolve = resolver({ A: '${{ project.B }}', B: '${{ project.C }}', C: '${{ project.A }}' })
    expect(() => resolve(plain('${{ project.B }}'))).toThrow(
      'leads in a circle: project.B → project.C → project.A → project.B.',
    )
  })
  it('are listed once each, and a dollar with other brackets is none', () => {
    expect(referencesIn('${{ project.A }} ${{project.A}} ${B} $C {{ project.D }} ${{ db-1.URL }}')).toEqual([
      'project.A',
      'db-1.URL',
    ])
  })
})
