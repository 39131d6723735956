import * as v from 'valibot'
import { shaped } from '#server/kernel/json'
import { requestsOf, type PullRequestApi, type RepositoryPlace } from './forge.ts'

const Comment = v.object({ id: v.number(), body: v.nullish(v.string(), '') })
const Comments = v.array(Comment)
const PullRequest = v.object({ state: v.picklist(['open', 'closed']) })
const PAGE = 50

export const readNumberedComments = (answer: unknown) =>
  (shaped(Comments, answer) ?? []).map(({ id, body }) => ({ id: String(id), body }))
export const readNumberedId = (answer: unknown): string | undefined => {
  const told = shaped(Comment, answer)
  return told && String(told.id)
}
/** A comment of HTML is not shown, and kept as it is. */
export const htmlMarker = (text: string): string => `<!-- ${text} -->`

/**
 * Pull requests of forges that keep their comments with those of issues: GitHub, and Gitea and Forgejo, which
 * took over its API.
 */
export const issueComments = (
  api: (place: RepositoryPlace) => { root: string; headers: Record<string, string> },
): PullRequestApi => {
  const request = requestsOf((place) => {
    const { root, headers } = api(place)
    return { root: `${root}/repos/${place.path}`, headers }
  })
  return {
    find: (place, number) => request(place, 'GET', `pulls/${number}`),
    isOpen(answer) {
      const told = shaped(PullRequest, answer)
      return told && told.state === 'open'
    },
    page_size: PAGE,
    comments: (place, number, page) =>
      request(place, 'GET', `issues/${number}/comments?per_page=${PAGE}&limit=${PAGE}&page=${page}`),
    readComments: readNumberedComments,
    comment: (place, number, body) => request(place, 'POST', `issues/${number}/comments`, { body }),
    edit: (place, _number, id, body) => request(place, 'PATCH', `issues/comments/${id}`, { body }),
    readId: readNumberedId,
    marker: htmlMarker,
  }
}
