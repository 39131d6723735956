import * as v from 'valibot'
import { list, pagingEntries, severalIds, sorting, Timestamp } from '#server/kernel/schemas'

const Kind = v.pipe(
  v.picklist(['exact', 'prefix', 'regex']),
  v.title('RedirectKind'),
  v.description(
    '`exact`: this path alone; `prefix`: this path and all below it; `regex`: a regular expression over the whole path.',
  ),
)
const From = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(1000),
  v.description(
    'Path or pattern, compared with the path as it was requested, without the query; in a path international characters and spaces are encoded as browsers do. Patterns know characters, `.`, classes, `\\d`, `\\w`, groups, alternatives and `? * + {n,m}`.',
  ),
  v.examples(['/old', '/blog/(\\d+)/([^/]+)']),
)
const To = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(2000),
  v.description(
    'Path, or http or https address. `$1` to `$9` stand for what the groups of a pattern matched; for a prefix `$1` is the rest behind it with its leading slash, and `/$1` means the same: `/p` to `/q/$1` sends `/p/a` to `/q/a` and `/p` to `/q`.',
  ),
  v.examples(['/new', 'https://example.com/posts/$1']),
)
const Status = v.pipe(
  v.picklist([301, 302, 307, 308]),
  v.title('RedirectStatus'),
  v.description('301 and 308 are kept by browsers; 307 and 308 keep the method.'),
)
const entries = {
  kind: Kind,
  from: From,
  to: To,
  status: Status,
  keep_query: v.pipe(
    v.boolean(),
    v.description('Whether the query of the request is put behind the target.'),
  ),
  priority: v.pipe(
    v.number(),
    v.integer(),
    v.minValue(0),
    v.maxValue(10_000),
    v.description('Rules are tried from the lowest number to the highest; the first that matches answers.'),
  ),
  enabled: v.boolean(),
}
export const NewRedirect = v.pipe(
  v.strictObject({
    domain_id: v.pipe(v.string(), v.maxLength(64), v.description('Domain whose requests it is about.')),
    kind: v.optional(Kind, 'exact'),
    from: From,
    to: To,
    status: v.optional(Status, 301),
    keep_query: v.optional(entries.keep_query, true),
    priority: v.optional(entries.priority, 100),
    enabled: v.optional(entries.enabled, true),
  }),
  v.title('NewRedirect'),
)
export type NewRedirect = v.InferOutput<typeof NewRedirect>
export const RedirectChange = v.pipe(v.partial(v.strictObject(entries)), v.title('RedirectChange'))
export type RedirectChange = v.InferOutput<typeof RedirectChange>

export const RedirectToggle = v.pipe(
  v.strictObject({
    enabled: v.optional(v.pipe(v.boolean(), v.description('New state; without it the state is toggled.'))),
  }),
  v.title('RedirectToggle'),
)

export const Redirect = v.pipe(
  v.object({
    id: v.string(),
    domain_id: v.string(),
    app_id: v.string(),
    project_id: v.string(),
    hostname: v.pipe(v.string(), v.description('Name of the domain.')),
    ...entries,
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
  v.title('Redirect'),
)
export type Redirect = v.InferOutput<typeof Redirect>

export const RedirectTest = v.pipe(
  v.object({
    domain_id: v.nullable(
      v.pipe(
        v.string(),
        v.description('Domain that answers; null when none that you can see has the address.'),
      ),
    ),
    redirect_id: v.nullable(v.pipe(v.string(), v.description('The rule that answers first.'))),
    location: v.nullable(v.pipe(v.string(), v.description('Where the first answer leads.'))),
    status: v.nullable(v.number()),
    ends: v.pipe(
      v.picklist(['app', 'elsewhere', 'loop']),
      v.description(
        '`app`: the app answers in the end; `elsewhere`: a name that you cannot see or that is not served here.',
      ),
    ),
    hops: v.array(
      v.object({
        url: v.string(),
        status: v.number(),
        by: v.picklist(['https', 'www', 'rule']),
        redirect_id: v.nullable(v.string()),
        location: v.string(),
      }),
    ),
  }),
  v.title('RedirectTest'),
)
export type RedirectTest = v.InferOutput<typeof RedirectTest>
export const RedirectList = v.object({
  ...list(Redirect).entries,
  test: v.pipe(
    v.nullable(RedirectTest),
    v.description('What an address would be answered; null without `test`.'),
  ),
})
export const RedirectQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['from', 'priority', 'created_at'], 'Newest first.', { from: 'source' }),
  project_id: severalIds('Only rules of this project.'),
  domain_id: severalIds('Only rules of this domain.'),
  app_id: severalIds('Only rules of domains of this app.'),
  test: v.optional(
    v.pipe(
      v.string(),
      v.maxLength(2000),
      v.check(
        (text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol),
        'must be an http or https address.',
      ),
      v.description(
        'An address; the answer tells which rule would match and where it leads. Nothing is requested.',
      ),
      v.examples(['https://example.com/old']),
    ),
  ),
})
