import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readTemplateFolder, type TemplateFolder } from '../server/templates/folder.ts'

/** The templates of the checkout by name. Used by the build and by tests; throws where one breaks its schema. */
export function readTemplates(root: string): TemplateFolder[] {
  const directory = join(root, 'templates')
  return readdirSync(directory)
    .sort()
    .map((slug) =>
      readTemplateFolder(slug, {
        template: readFileSync(join(directory, slug, 'template.yaml'), 'utf8'),
        compose: readFileSync(join(directory, slug, 'compose.yaml'), 'utf8'),
      }),
    )
}
