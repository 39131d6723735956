import * as v from 'valibot'

/** Variables that a repository shows in its example of a `.env` file, as a plan has them. */
export const SuggestedVariables = v.pipe(
  v.array(
    v.pipe(
      v.object({
        key: v.string(),
        value: v.pipe(v.string(), v.description('Value of the example; often a stand-in.')),
        comment: v.nullable(v.pipe(v.string(), v.description('What stands above it in the file.'))),
      }),
      v.title('SuggestedVariable'),
    ),
  ),
  v.description(
    'Variables that the `.env.example` of the repository names, at most 200; absent where there is none. They are suggestions: nothing sets them.',
  ),
)
