import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { projectFileSchema } from '#server/project-file/json-schema'
import { renderErrors } from '#server/http/render-errors'
import { ROOT } from '#test/support/routes'
import { readMigrations } from '../../scripts/read-migrations.ts'
import { readSources } from './sources.ts'

const documents = [
  ...readSources(['docs'], '.md'),
  ...['README.md', 'CHANGELOG.md']
    .filter((name) => existsSync(join(ROOT, name)))
    .map((name) => ({ path: name, text: readFileSync(join(ROOT, name), 'utf8') })),
]
const FOLDERS = '(?:server|routes|tasks|storage|test|scripts|docs|bench|images|cli|templates|dashboard)'

describe('the documents', () => {
  it('name only files that exist', () => {
    const missing = documents.flatMap(({ path, text }) =>
      [...text.matchAll(new RegExp(`\`(${FOLDERS}/[\\w./-]+\\.(?:ts|sql|md|json|sh|tsv|yaml|vue))\``, 'g'))]
        .map((match) => match[1]!)
        .filter((name) => !existsSync(join(ROOT, name)))
        .map((name) => `${path}: ${name}`),
    )
    expect(missing).toEqual([])
  })
  it('link only to files that exist', () => {
    const broken = documents.flatMap(({ path, text }) =>
      [...text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)]
        .map((match) => match[1]!)
        .filter((name) => !existsSync(join(ROOT, path, '..', name)))
        .map((name) => `${path}: ${name}`),
    )
    expect(broken).toEqual([])
  })
  it('list the errors that exist: run `npx node scripts/write-errors.ts` after a change', () => {
    expect(readFileSync(join(ROOT, 'docs/errors.md'), 'utf8')).toBe(renderErrors())
  })
  it('hold the schema of portreeve.yaml: run `npx node scripts/write-project-schema.ts` after a change', () => {
    expect(JSON.parse(readFileSync(join(ROOT, 'docs/portreeve.schema.json'), 'utf8'))).toEqual(
      JSON.parse(JSON.stringify(projectFileSchema())),
    )
  })
})

describe('migrations', () => {
  const migrations = readMigrations(ROOT)
  it('are numbered from 1 without a gap', () => {
    expect(migrations.map(([name]) => Number(name.slice(0, 4)))).toEqual(migrations.map((_, at) => at + 1))
  })
  it('that a release has shipped are never changed', () => {
    const released = JSON.parse(
      readFileSync(join(ROOT, 'test/fixtures/released-migrations.json'), 'utf8'),
    ) as Record<string, string>
    const now = Object.fromEntries(
      migrations.map(([name, sql]) => [name, createHash('sha256').update(sql).digest('hex')]),
    )
    for (const [name, hash] of Object.entries(released)) expect(now[name], name).toBe(hash)
  })
  it('make strict tables', () => {
    const loose = migrations.flatMap(([name, sql]) =>
      [...sql.matchAll(/CREATE TABLE (\w+) \([\s\S]*?\n\)([^;]*);/g)]
        .filter((match) => !match[2]!.includes('STRICT'))
        .map((match) => `${name}: ${match[1]}`),
    )
    expect(loose).toEqual([])
  })
})
