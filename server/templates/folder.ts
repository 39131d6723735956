import * as v from 'valibot'
import { parse } from 'yaml'
import { Slug, TemplateFile } from './schema.ts'

/** A template as it is kept: what its two files say. */
export interface TemplateFolder {
  slug: string
  template: TemplateFile
  /** Text of `compose.yaml`. */
  compose: string
  /** Name of the catalogue that it comes from; absent for those of the release. */
  catalog?: string
}

/** Reads the two files of a template. Throws an error that names the first thing that is wrong. */
export function readTemplateFolder(
  slug: string,
  files: { template: string; compose: string },
): TemplateFolder {
  if (!v.is(Slug, slug)) throw new Error(`${slug} is no name of a template.`)
  const read = v.safeParse(TemplateFile, parse(files.template, { maxAliasCount: 0 }))
  if (!read.success) {
    const [issue] = read.issues
    throw new Error(`${slug}/template.yaml: ${v.getDotPath(issue) ?? 'the file'}: ${issue.message}`)
  }
  return { slug, template: read.output, compose: files.compose }
}
