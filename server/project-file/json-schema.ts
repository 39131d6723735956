import { toJsonSchema } from '@valibot/to-json-schema'
import { WrittenProjectFile } from './schema.ts'

/** The JSON Schema of `portreeve.yaml`, for editors; also in docs/portreeve.schema.json. */
export const projectFileSchema = (): object => ({
  ...toJsonSchema(WrittenProjectFile, { errorMode: 'ignore', typeMode: 'input', target: 'draft-2020-12' }),
})
