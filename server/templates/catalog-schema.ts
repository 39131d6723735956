import * as v from 'valibot'
import { Timestamp } from '#server/kernel/schemas'

const Digest = v.pipe(
  v.string(),
  v.regex(/^sha256:[0-9a-f]{64}$/, '`sha256:` and 64 hexadecimal digits.'),
  v.description('SHA-256 of the catalogue: of the bytes that the address sent, or of the uploaded JSON.'),
  v.examples(['sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08']),
)
const Name = v.pipe(
  v.string(),
  v.trim(),
  v.minLength(1),
  v.maxLength(60),
  v.regex(/^[\p{L}\p{N} ._-]+$/u, 'Letters, digits, spaces, dots, hyphens and underscores.'),
  v.description('Name of the catalogue, unique on the installation.'),
)
const Url = v.pipe(
  v.string(),
  v.maxLength(2000),
  v.url(),
  v.description('Address of a JSON file with a list of templates, at most 2 MiB.'),
)

/** One template as a catalogue has it: what the two files of a folder say. */
export const CatalogEntry = v.strictObject({
  slug: v.pipe(v.string(), v.description('Name of the template in addresses.')),
  template: v.pipe(v.record(v.string(), v.unknown()), v.description('What `template.yaml` says.')),
  compose: v.pipe(v.string(), v.maxLength(262_144), v.description('Text of `compose.yaml`.')),
})
export const MOST_TEMPLATES = 1000
/** The whole of a catalogue. */
export const CatalogContent = v.pipe(v.array(CatalogEntry), v.minLength(1), v.maxLength(MOST_TEMPLATES))
export type CatalogContent = v.InferOutput<typeof CatalogContent>

/** Body of `POST /api/template-catalogs`. */
export const NewCatalog = v.pipe(
  v.strictObject({
    name: Name,
    url: v.optional(Url),
    templates: v.optional(
      v.pipe(CatalogContent, v.description('The templates themselves, instead of an address.')),
    ),
    digest: v.optional(
      v.pipe(Digest, v.description('Expected digest. Default: the digest of the first download.')),
    ),
  }),
  v.title('NewTemplateCatalog'),
)
export type NewCatalog = v.InferOutput<typeof NewCatalog>

/** Body of `POST /api/template-catalogs/:id/refresh`. */
export const RefreshCatalog = v.pipe(
  v.strictObject({
    digest: v.optional(v.pipe(Digest, v.description('Digest of a changed catalogue that is to be taken.'))),
  }),
  v.title('RefreshTemplateCatalog'),
)
export type RefreshCatalog = v.InferOutput<typeof RefreshCatalog>

export const Catalog = v.pipe(
  v.object({
    id: v.string(),
    name: Name,
    url: v.pipe(v.nullable(v.string()), v.description('Where it is fetched; null for an upload.')),
    digest: Digest,
    templates: v.pipe(v.number(), v.integer(), v.description('Templates in it.')),
    checked_at: v.pipe(Timestamp, v.description('When it was last fetched or uploaded.')),
    created_at: Timestamp,
  }),
  v.title('TemplateCatalog'),
)
export type Catalog = v.InferOutput<typeof Catalog>
