import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { renderErrors } from '../server/http/render-errors.ts'

/** Writes `docs/errors.md` from the table of error codes: `npx node scripts/write-errors.ts`. */
writeFileSync(join(import.meta.dirname, '../docs/errors.md'), renderErrors())
