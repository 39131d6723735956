import { expect, it } from 'vitest'
import { openDb } from '#server/kernel/db'
import { migrate } from '#server/kernel/migrate'
import { ROOT } from '#test/support/routes'
import { openMigratedDb, schemaOf } from '#test/support/schema'
import { readMigrations } from '../../scripts/read-migrations.ts'

it('tests run on the schema that the migrations make one by one', () => {
  const [migrated, copied] = [openDb(':memory:'), openMigratedDb()]
  migrate(migrated, readMigrations(ROOT))
  expect(schemaOf(copied)).toEqual(schemaOf(migrated))
  expect(copied.raw.pragma('user_version')).toEqual(migrated.raw.pragma('user_version'))
  migrated.close()
  copied.close()
})

it('each test has a database of its own, which refuses what breaks a foreign key', () => {
  const [one, other] = [openMigratedDb(), openMigratedDb()]
  one.raw.exec('CREATE TABLE only_here (id TEXT)')
  expect(schemaOf(other)).not.toContainEqual(expect.objectContaining({ name: 'only_here' }))
  expect(other.raw.pragma('foreign_keys', { simple: true })).toBe(1)
  one.close()
  other.close()
})
