import { setImmediate as turn } from 'node:timers/promises'
import * as v from 'valibot'
import { ApiError, type ErrorDetail } from '#server/kernel/errors'
import { parseForeignJson } from '#server/kernel/json'
import { CatalogContent, MOST_TEMPLATES } from './catalog-schema.ts'
import type { TemplateFolder } from './folder.ts'
import { Slug, TemplateFile } from './schema.ts'

/** Paths below `/api/templates` that are no templates. */
const RESERVED = new Set(['categories', 'catalogs'])
/** What a release must keep, too: a version with a digit, or a digest. */
const PINNED = /(:(?!latest|stable|edge|main|master|nightly|dev)[\w.-]*\d[\w.-]*|@sha256:[0-9a-f]{64})$/
/** Values of all templates together, of which a hundred each are many. */
const MOST_VALUES = 100_000
/** Faults beyond these help nobody. */
const MAX_DETAILS = 50

/**
 * Checks every template of a catalogue as the build checks those of the release: its schema, that the compose file
 * is taken, that images are pinned and that no name is taken. Throws VALIDATION_ERROR with the path of each fault.
 */
export async function readCatalog(
  content: CatalogContent,
  taken: ReadonlySet<string>,
): Promise<TemplateFolder[]> {
  const details: ErrorDetail[] = []
  const known = new Set<string>()
  const folders: TemplateFolder[] = []
  for (const [index, entry] of content.entries()) {
    // A thousand compose files are read: other requests go on between them.
    await turn()
    const found = await readEntry(entry)
    if (taken.has(entry.slug) || RESERVED.has(entry.slug) || known.has(entry.slug))
      found.details.push({ path: 'slug', message: `There is a template named ${entry.slug} already.` })
    known.add(entry.slug)
    for (const { path, message } of found.details)
      details.push({ path: `templates.${index}.${path}`, message })
    if (found.folder) folders.push(found.folder)
    if (details.length >= MAX_DETAILS) break
  }
  const [first] = details
  if (first) throw new ApiError('VALIDATION_ERROR', `${first.path}: ${first.message}`, details)
  return folders
}

async function readEntry({
  slug,
  template,
  compose,
}: CatalogContent[number]): Promise<{ folder?: TemplateFolder; details: ErrorDetail[] }> {
  const details: ErrorDetail[] = []
  const named = v.safeParse(Slug, slug)
  for (const issue of named.issues ?? []) details.push({ path: 'slug', message: issue.message })
  const read = v.safeParse(TemplateFile, template)
  for (const issue of read.issues ?? [])
    details.push({
      path: ['template', v.getDotPath(issue)].filter(Boolean).join('.'),
      message: issue.message,
    })
  details.push(...(await faultsOf(compose, Object.keys(read.success ? read.output.variables : {}))))
  return read.success ? { folder: { slug, template: read.output, compose }, details } : { details }
}

/** What is wrong with a compose file, by path. Each variable counts as given. */
async function faultsOf(compose: string, variables: readonly string[]): Promise<ErrorDetail[]> {
  const { ComposeError, parseCompose } = await import('#server/compose/parse')
  const given = Object.fromEntries(variables.map((key) => [key, `value-of-${key.toLowerCase()}`]))
  try {
    const { services } = parseCompose(compose, { variables: given, strict: true })
    return services.flatMap(({ name, image }) =>
      image !== null && PINNED.test(image)
        ? []
        : [{ path: `compose.services.${name}.image`, message: 'needs an image with a version or a digest.' }],
    )
  } catch (error) {
    if (!(error instanceof ComposeError)) throw error
    return error.issues.map(({ path, message }) => ({
      path: ['compose', path].filter(Boolean).join('.'),
      message,
    }))
  }
}

/** Reads what an address sent. Throws VALIDATION_ERROR about `url`. */
export function parseContent(text: string): CatalogContent {
  let value: unknown
  try {
    value = parseForeignJson(text, MOST_VALUES)
  } catch {
    throw new ApiError('VALIDATION_ERROR', 'url: leads to no JSON.', [
      { path: 'url', message: 'leads to no JSON.' },
    ])
  }
  // Counted before they are read: each that is wrong is put into words.
  if (Array.isArray(value) && value.length > MOST_TEMPLATES)
    throw new ApiError('VALIDATION_ERROR', `url: leads to more than ${MOST_TEMPLATES} templates.`, [
      { path: 'url', message: `leads to more than ${MOST_TEMPLATES} templates.` },
    ])
  const read = v.safeParse(CatalogContent, value)
  if (read.success) return read.output
  const details = read.issues.slice(0, MAX_DETAILS).map((issue) => ({
    path: ['templates', v.getDotPath(issue)].filter(Boolean).join('.'),
    message: issue.message,
  }))
  throw new ApiError('VALIDATION_ERROR', `${details[0]!.path}: ${details[0]!.message}`, details)
}
