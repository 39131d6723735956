import { describe, expect, it } from 'vitest'
import { readMigrations } from '../../scripts/read-migrations.ts'
import { ROOT } from '#test/support/routes'
import { openMigratedDb } from '#test/support/schema'
import { readSources } from './sources.ts'

const schema = readMigrations(ROOT)
  .map(([, sql]) => sql)
  .join('\n')
const tables = new Set(
  [...schema.matchAll(/CREATE TABLE (?:IF NOT EXISTS )?(\w+)/g)].map(([, name]) => name!),
)
/** Which part of the server names a table in its SQL: its domain, `kernel`, `http` … */
const owners = new Map<string, Map<string, string>>()
for (const { path, text } of readSources(['server']))
  for (const [, name] of text.matchAll(/\b(?:FROM|JOIN|INTO|UPDATE|TABLE)\s+(\w+)/g))
    if (tables.has(name!)) {
      const places = owners.get(name!) ?? new Map<string, string>()
      owners.set(name!, places.set(path.split('/')[1]!, path))
    }

describe('every table', () => {
  it('is named in the SQL of one domain alone: others ask its service, or read a view that it offers', () => {
    const shared = [...owners].filter(([, places]) => places.size > 1)
    expect(shared.map(([table, places]) => `${table}: ${[...places.values()].join(', ')}`)).toEqual([])
  })
  it('is found by this test', () => {
    // Rows of counters are written by triggers, and steps of jobs through names that are put together.
    expect([...tables].filter((name) => !owners.has(name)).length).toBeLessThan(tables.size / 3)
    expect(owners.get('apps')?.keys().next().value).toBe('apps')
  })
  it('is listed as resource or as sealed by its owner', () => {
    const declared = readSources(['server'])
      .filter(({ path }) => path.endsWith('/module.ts'))
      .flatMap(({ path, text }) =>
        [...text.matchAll(/table: '(\w+)'|sealedById\('(\w+)'/g)].map(([, table, sealed]) => ({
          owner: path.split('/')[1]!,
          table: table ?? sealed!,
        })),
      )
    // The check of the key is the kernel's, and nobody but the rotation seals it anew.
    const foreign = declared.filter(
      ({ owner, table }) => table !== 'meta' && owners.has(table) && !owners.get(table)!.has(owner),
    )
    expect(foreign).toEqual([])
    expect(declared.length).toBeGreaterThan(15)
  })
  it('finds the rows that hang on a deleted one by an index, however many others there are', () => {
    const db = openMigratedDb()
    const hanging = [...tables].flatMap((table) =>
      (db.raw.pragma(`foreign_key_list(${table})`) as { from: string }[]).map(
        ({ from }) => [table, from] as const,
      ),
    )
    const scanned = hanging.filter(([table, column]) => {
      const plan = db.raw.prepare(`EXPLAIN QUERY PLAN SELECT 1 FROM ${table} WHERE ${column} = ?`).all('x')
      return (plan as { detail: string }[]).some(({ detail }) => detail.startsWith('SCAN'))
    })
    db.close()
    expect(scanned).toEqual([])
    expect(hanging.length).toBeGreaterThan(50)
  })
})
