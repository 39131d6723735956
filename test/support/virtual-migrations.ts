import { readMigrations } from '../../scripts/read-migrations.ts'
import { ROOT } from './routes.ts'

/** What the build puts into `#migrations`, for tests that run without it. */
export const migrations = readMigrations(ROOT)
