import { expect, it } from 'vitest'
import { openDb } from '#server/kernel/db'
import { migrate } from '#server/kernel/migrate'
import { ROOT } from '#test/support/routes'
import { applySchema, schemaOf } from '#test/support/schema'
import { readMigrations } from '../../scripts/read-migrations.ts'

it('tests run on the schema that the migrations make one by one', () => {
  const [migrated, copied] = [openDb(':memory:'), openDb(':memory:')]
  migrate(migrated, readMigrations(ROOT))
  applySchema(copied)
  expect(schemaOf(copied)).toEqual(schemaOf(migrated))
  expect(copied.raw.pragma('user_version')).toEqual(migrated.raw.pragma('user_version'))
  migrated.close()
  copied.close()
})
