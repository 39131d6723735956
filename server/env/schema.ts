import * as v from 'valibot'
import { pagingEntries, SECRET, sorting, Timestamp, ofVariables } from '#server/kernel/schemas'
import { VARIABLE_NAME } from '#server/kernel/dotenv'

/** A value of the environment of a process may have this many bytes on Linux. */
const LONGEST_VALUE = 100_000

/** Set by Portreeve itself, read by the builder, or the name of an endpoint beside the variables. */
const RESERVED = /^(?:PORTREEVE_.*|BUILDKIT_.*|import|export|__proto__)$/

export const VariableKey = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(255),
  v.regex(VARIABLE_NAME, 'must be letters, digits and _, and not begin with a digit.'),
  v.check((key) => !RESERVED.test(key), 'is a reserved name; choose another.'),
  v.description('Name of the variable, as the program reads it.'),
  v.examples(['STRIPE_MODE']),
)
export const VariableText = v.pipe(
  v.string(),
  v.maxLength(LONGEST_VALUE),
  v.maxBytes(LONGEST_VALUE),
  v.regex(/^[^\u0000]*$/, 'must not hold NUL.'),
)
const Value = v.pipe(
  VariableText,
  SECRET,
  v.description(
    'Value, at most 100,000 characters. `${{ project.KEY }}` stands for a shared variable of the project and `${{ <database>.DATABASE_URL }}` for what a database of the project offers; both are looked up by each deployment. The mask `********` leaves a secret as it is.',
  ),
  v.examples(['${{ project.STRIPE_KEY }}']),
)
const PreviewValue = v.nullable(
  v.pipe(VariableText, SECRET, v.description('Value in previews of pull requests; null: the same.')),
)
const Secret = v.pipe(
  v.boolean(),
  v.description(
    'Whether answers mask the value and logs leave it out. Default: true for names such as …_PASSWORD, …_TOKEN, …_SECRET or …_API_KEY and for addresses with a password in them. What makes a secret plain sends its values again.',
  ),
)
const Scopes = v.pipe(
  v.array(v.picklist(['build', 'runtime'])),
  v.minLength(1),
  v.check((scopes) => new Set(scopes).size === scopes.length, 'must name each scope once.'),
  v.description(
    '`runtime`: in the environment of instances, the release command and one-off commands. `build`: while the image is made; a secret is then only mounted. Default: both.',
  ),
  v.examples([['build', 'runtime']]),
)
const Comment = v.nullable(v.pipe(v.string(), v.maxLength(500), v.description('For people.')))

/** Body of `POST /api/apps/:id/env`. */
export const NewVariable = v.pipe(
  v.strictObject({
    key: VariableKey,
    value: Value,
    secret: v.optional(Secret),
    scopes: v.optional(Scopes),
    preview_value: v.optional(PreviewValue),
    comment: v.optional(Comment),
  }),
  v.title('NewVariable'),
)
export type NewVariable = v.InferOutput<typeof NewVariable>
/** Body of `PUT /api/apps/:id/env/:key`. */
export const VariableChange = v.pipe(
  v.strictObject({
    value: v.optional(Value),
    secret: v.optional(Secret),
    scopes: v.optional(Scopes),
    preview_value: v.optional(PreviewValue),
    comment: v.optional(Comment),
  }),
  v.title('VariableChange'),
)
export type VariableChange = v.InferOutput<typeof VariableChange>

const Version = v.object({
  version: v.number(),
  action: v.picklist(['created', 'changed', 'deleted']),
  fields: v.pipe(v.array(v.string()), v.description('What changed.'), v.examples([['value']])),
  by: v.object({ id: v.nullable(v.string()), name: v.string() }),
  at: Timestamp,
})
const shown = v.nullable(
  v.pipe(
    v.string(),
    v.description(
      'As it was set, references included; `********` for a secret; null when it cannot be read with the key of this installation.',
    ),
  ),
)
const shared = {
  id: v.pipe(v.string(), v.examples(['env_0123456789abcdefghjk'])),
  project_id: v.string(),
  key: v.string(),
  value: shown,
  secret: v.boolean(),
  comment: v.nullable(v.string()),
  version: v.pipe(v.number(), v.description('Counts the changes of this key, from 1.')),
  history: v.pipe(
    v.array(Version),
    v.description('The last 10 changes of this key, newest first, deletions before included.'),
  ),
  created_at: Timestamp,
  updated_at: Timestamp,
}
export const Variable = v.pipe(
  v.object({
    ...shared,
    app_id: v.string(),
    preview_value: shown,
    scopes: v.array(v.picklist(['build', 'runtime'])),
  }),
  v.title('Variable'),
)
export type Variable = v.InferOutput<typeof Variable>
export const SharedVariable = v.pipe(v.object(shared), v.title('SharedVariable'))
export type SharedVariable = v.InferOutput<typeof SharedVariable>

export const VariableQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['key', 'created_at', 'updated_at'], 'By key.'),
  q: v.optional(v.pipe(v.string(), v.maxLength(255), v.description('Part of the key.'))),
})

/** What a sender of many variables has read. */
const Seen = v.pipe(
  v.record(v.string(), v.pipe(v.number(), v.integer(), v.minValue(0))),
  ofVariables(),
  v.description(
    'The variables as they were read, by key: `version` of each, 0 for none of that key. When one of them is another one by now, or one that is not among them would be removed, nothing is changed and the answer is 412. Without it, the last one who sends a list wins.',
  ),
  v.examples([{ STRIPE_MODE: 3 }]),
)
export type SeenVersions = v.InferOutput<typeof Seen>

/** Body of `POST /api/apps/:id/env/import`. */
export const VariableImport = v.pipe(
  v.strictObject({
    text: v.optional(
      v.pipe(
        v.string(),
        v.maxLength(1_000_000),
        SECRET,
        v.description('Text of a dotenv file: quotes, values of several lines, `export` and comments.'),
        v.examples(['export STRIPE_MODE="live" # not a test']),
      ),
    ),
    variables: v.optional(
      v.pipe(
        v.record(v.string(), v.pipe(v.string(), SECRET)),
        ofVariables(),
        v.description('The same as an object; give one of the two.'),
        v.examples([{ STRIPE_MODE: 'live' }]),
      ),
    ),
    mode: v.optional(
      v.pipe(
        v.picklist(['merge', 'replace']),
        v.description(
          '`merge` keeps variables that are not named, `replace` removes them. The lines in which an export only names a variable leave it as it is.',
        ),
      ),
      'merge',
    ),
    secret: v.optional(Secret),
    scopes: v.optional(Scopes),
    details: v.optional(
      v.pipe(
        v.record(
          v.string(),
          v.strictObject({
            secret: v.optional(Secret),
            scopes: v.optional(Scopes),
            comment: v.optional(Comment),
          }),
        ),
        ofVariables(),
        v.description('What is said of single variables that are named, by their key; wins over the others.'),
        v.examples([{ STRIPE_MODE: { comment: 'live or test' } }]),
      ),
    ),
    versions: v.optional(Seen),
  }),
  v.title('VariableImport'),
)
export type VariableImport = v.InferOutput<typeof VariableImport>

const keys = (what: string) => v.pipe(v.array(v.string()), v.description(what))
/** What a change of many variables did; every key is in one list. */
export const VariableReport = v.pipe(
  v.object({
    added: keys('Keys that are new.'),
    changed: keys('Keys of which something is different now.'),
    removed: keys('Keys that are gone.'),
    unchanged: keys('Keys that were named and are as they were.'),
  }),
  v.title('VariableReport'),
)
export type VariableReport = v.InferOutput<typeof VariableReport>

/** Body of `PUT /api/projects/:id/env`. */
export const SharedVariables = v.pipe(
  v.strictObject({
    variables: v.pipe(
      v.array(
        v.strictObject({
          key: VariableKey,
          value: v.optional(Value),
          secret: v.optional(Secret),
          comment: v.optional(Comment),
        }),
      ),
      v.maxLength(2000),
      v.description(
        'All of them: what is not named is removed. Without `value`, or with the mask, a variable keeps the value that it has.',
      ),
    ),
    versions: v.optional(Seen),
  }),
  v.title('SharedVariables'),
)
export type SharedVariables = v.InferOutput<typeof SharedVariables>

export const AppVariableParams = v.object({
  id: v.pipe(v.string(), v.description('Identifier of the app.')),
  key: v.pipe(v.string(), v.description('Name of the variable.')),
})
export const RevealedVariable = v.pipe(
  v.object({
    key: v.string(),
    value: v.pipe(v.string(), SECRET),
    preview_value: v.nullable(v.pipe(v.string(), SECRET)),
  }),
  v.title('RevealedVariable'),
)
export const ExportQuery = v.strictObject({
  reveal: v.optional(
    v.pipe(
      v.picklist(['true', 'false']),
      v.description('`true` writes secrets in clear; the audit log says so.'),
    ),
    'false',
  ),
  masked: v.optional(
    v.pipe(
      v.picklist(['true', 'false']),
      v.description(
        '`true` writes `********` for each secret that is not revealed, which an import leaves as it is: a text to edit and send back.',
      ),
    ),
    'false',
  ),
})
