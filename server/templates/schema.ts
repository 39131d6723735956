import * as v from 'valibot'
import { AppName } from '#server/apps/configuration-schema'
import { pagingEntries, SECRET, several, sorting, ofVariables } from '#server/kernel/schemas'

/** Name of a template in addresses, and of its folder. */
export const Slug = v.pipe(
  v.string(),
  v.regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'Lower-case letters, digits and hyphens.'),
  v.description('Name of the template in addresses.'),
  v.examples(['ghost']),
)
const Sentence = v.pipe(v.string(), v.minLength(3), v.maxLength(600))
const Link = v.pipe(v.string(), v.url(), v.startsWith('https://'), v.maxLength(300))
const Length = v.pipe(v.number(), v.integer(), v.minValue(8), v.maxValue(256))
const Affix = v.optional(v.pipe(v.string(), v.maxLength(20)))

/** How a value is made that nobody gave. */
export const Generator = v.variant('kind', [
  v.strictObject({
    kind: v.pipe(v.literal('password'), v.description('Letters and digits.')),
    length: v.pipe(Length, v.description('Characters.')),
    prefix: Affix,
    suffix: Affix,
  }),
  v.strictObject({
    kind: v.pipe(v.literal('hex'), v.description('Hexadecimal digits.')),
    length: v.pipe(Length, v.description('Digits.')),
    prefix: Affix,
    suffix: Affix,
  }),
  v.strictObject({
    kind: v.pipe(v.literal('base64'), v.description('Random bytes in base64.')),
    bytes: v.pipe(Length, v.description('Bytes before they are encoded.')),
    prefix: Affix,
    suffix: Affix,
  }),
  v.strictObject({
    kind: v.pipe(v.literal('url'), v.description('Address of a public service, with its scheme.')),
    service: v.string(),
  }),
  v.strictObject({
    kind: v.pipe(v.literal('host'), v.description('Host name of a public service.')),
    service: v.string(),
  }),
])
export type Generator = v.InferOutput<typeof Generator>

/** A variable that the compose file asks for. */
export const TemplateVariable = v.strictObject({
  description: v.pipe(Sentence, v.description('Description for the person who deploys the template.')),
  generate: v.optional(v.pipe(Generator, v.description('How it is made where nobody gives one.'))),
  default: v.optional(v.pipe(v.string(), v.maxLength(2000), v.description('Value where nobody gives one.'))),
  required: v.optional(v.pipe(v.boolean(), v.description('Whether the deployment has to give one.')), false),
  secret: v.optional(
    v.pipe(v.boolean(), v.description('Whether it is kept out of answers and logs.')),
    false,
  ),
})
export type TemplateVariable = v.InferOutput<typeof TemplateVariable>

/** What a backup of the stack has to copy, and how. */
export const BackupHint = v.union([
  v.strictObject({
    volume: v.pipe(v.string(), v.description('Named volume of the compose file.')),
    pause: v.optional(v.pipe(v.boolean(), v.description('Whether what writes to it has to pause.')), false),
    skip: v.optional(
      v.pipe(v.boolean(), v.description('Whether it can be made anew, as a cache can.')),
      false,
    ),
  }),
  v.strictObject({
    service: v.pipe(v.string(), v.description('Service that holds the data.')),
    dump: v.pipe(
      v.strictObject({
        engine: v.picklist(['postgres', 'mysql', 'mariadb', 'mongodb']),
        user: v.string(),
        database: v.optional(v.string()),
        all_databases: v.optional(v.boolean()),
      }),
      v.description('The dump that is taken instead of its files.'),
    ),
  }),
])

const described = {
  name: v.pipe(v.string(), v.minLength(2), v.maxLength(60), v.description('Name of the software.')),
  description: v.pipe(Sentence, v.description('What it does, in a sentence.')),
  category: v.pipe(
    v.string(),
    v.regex(/^[a-z]+(-[a-z]+)*$/),
    v.maxLength(40),
    v.description('One of `GET /api/templates/categories`.'),
  ),
  links: v.pipe(
    v.strictObject({
      website: v.pipe(Link, v.description('Home page.')),
      source: v.pipe(Link, v.description('Source code.')),
      documentation: v.optional(v.pipe(Link, v.description('Manual.'))),
    }),
    v.description('Where to read more.'),
  ),
  minimum_memory_bytes: v.pipe(
    v.number(),
    v.integer(),
    v.minValue(16 * 1024 * 1024),
    v.description('Memory that the whole stack needs at least, in bytes.'),
  ),
}
const notes = {
  backup: v.optional(v.array(BackupHint), []),
  after_deploy: v.optional(v.pipe(Sentence, v.description('Steps that remain once it runs.'))),
  upgrade: v.pipe(Sentence, v.description('What to know before changing its version.')),
}

/** The file `template.yaml` beside a `compose.yaml`. */
export const TemplateFile = v.strictObject({
  ...described,
  variables: v.optional(
    v.record(v.pipe(v.string(), v.regex(/^[A-Z][A-Z0-9_]{0,62}$/)), TemplateVariable),
    {},
  ),
  ...notes,
})
export type TemplateFile = v.InferOutput<typeof TemplateFile>

const FromCatalog = v.pipe(
  v.nullable(v.string()),
  v.description('Name of the catalogue that an administrator added it with; null for those of the release.'),
)

/** A template in lists. */
export const TemplateSummary = v.pipe(
  v.object({ slug: Slug, catalog: FromCatalog, ...described }),
  v.title('TemplateSummary'),
)
export type TemplateSummary = v.InferOutput<typeof TemplateSummary>

const TemplateService = v.object({
  name: v.pipe(v.string(), v.description('Name of the service, and its host in the network of the app.')),
  image: v.nullable(v.pipe(v.string(), v.description('Image with its version.'))),
  public_port: v.nullable(v.pipe(v.number(), v.integer(), v.description('Port that gets a domain.'))),
  health_path: v.nullable(v.pipe(v.string(), v.description('Path that is probed until it answers.'))),
  volumes: v.pipe(v.array(v.string()), v.description('Named volumes that it keeps data in.')),
  memory_bytes: v.nullable(v.pipe(v.number(), v.integer(), v.description('Limit of its memory, in bytes.'))),
})

/** One template with all that there is to know before it is deployed. */
export const Template = v.pipe(
  v.object({
    slug: Slug,
    catalog: FromCatalog,
    ...described,
    services: v.pipe(v.array(TemplateService), v.description('In the order in which they start.')),
    variables: v.pipe(
      v.array(
        v.object({
          key: v.pipe(v.string(), v.description('Name of the variable.')),
          ...TemplateVariable.entries,
        }),
      ),
      v.description('Variables that the deployment may or must set.'),
    ),
    backup: v.pipe(v.array(BackupHint), v.description('What a backup must include.')),
    after_deploy: v.nullable(Sentence),
    upgrade: Sentence,
  }),
  v.title('Template'),
)

export const TemplateQuery = v.strictObject({
  q: v.optional(
    v.pipe(v.string(), v.maxLength(100), v.description('Text in the name, the description or the category.')),
  ),
  category: several(v.pipe(v.string(), v.maxLength(40)), 'Only this category.'),
  ...pagingEntries,
  sort: sorting(['name', 'category', 'minimum_memory_bytes'], 'By name.'),
})
export type TemplateQuery = v.InferOutput<typeof TemplateQuery>

export const Category = v.pipe(
  v.object({
    category: v.pipe(v.string(), v.examples(['monitoring'])),
    count: v.pipe(v.number(), v.integer(), v.description('Templates in it.')),
  }),
  v.title('TemplateCategory'),
)
export const SlugParam = v.object({ slug: v.pipe(v.string(), v.description('Name of the template.')) })
export const ComposeText = v.pipe(
  v.object({
    compose: v.pipe(v.string(), v.description('The compose file, YAML; `${KEY}` stands for a variable.')),
  }),
  v.title('ComposeText'),
)

/** Body of `POST /api/templates/:slug/deploy`. */
export const DeployTemplate = v.pipe(
  v.strictObject({
    name: v.optional(v.pipe(AppName, v.description('Name of the app. Default: the name of the template.'))),
    project_id: v.optional(
      v.pipe(
        v.string(),
        v.maxLength(64),
        v.description('Project to make it in. Default: the project `default`.'),
      ),
    ),
    variables: v.optional(
      v.pipe(
        v.record(v.string(), v.pipe(v.string(), v.maxLength(100_000), SECRET)),
        ofVariables(),
        v.description('Values by the names of `GET /api/templates/:slug`; what is not given is generated.'),
      ),
      {},
    ),
  }),
  v.title('DeployTemplate'),
)
export type DeployTemplate = v.InferOutput<typeof DeployTemplate>
