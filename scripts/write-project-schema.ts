import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectFileSchema } from '../server/project-file/json-schema.ts'

/** Writes the JSON Schema of `portreeve.yaml`: `npx node scripts/write-project-schema.ts`. */
writeFileSync(
  join(import.meta.dirname, '../docs/portreeve.schema.json'),
  `${JSON.stringify(projectFileSchema(), null, 2)}\n`,
)
