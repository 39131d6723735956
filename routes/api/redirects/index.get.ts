import { endpoint } from '#server/endpoint'
import { RedirectList, RedirectQuery } from '#server/redirects/schema'

/** Rules of the domains that the caller can see, newest first. */
export default endpoint({
  summary: 'List redirect rules, or test an address',
  description:
    'With `test` the answer also tells which rule would answer an address, where it leads and how the chain of answers ends; nothing is requested.',
  access: 'viewer',
  query: RedirectQuery,
  response: RedirectList,
  handler({ actor, query: { page, per_page, sort, ...filter }, services }) {
    return services.redirects.list(actor, filter, { page, per_page, sort })
  },
})
