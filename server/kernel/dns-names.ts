/** Underscores are fine in DNS, though no public authority issues a certificate for such a name. */
const LABEL = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?'

/**
 * The form of a name in DNS, in lower case and without the dot of the root: labels of at most 63 characters,
 * at most 253 in all.
 * @param wildcard whether `*` may stand for the first label.
 * @param labels how many there must be at least, besides the wildcard.
 */
export const dnsName = ({
  wildcard = false,
  labels = 1,
}: {
  wildcard?: boolean
  labels?: 1 | 2
} = {}): RegExp =>
  new RegExp(
    `^(?=.{1,253}$)${wildcard ? '(?:\\*\\.)?' : ''}${LABEL}(?:\\.${LABEL})${labels === 1 ? '*' : '+'}$`,
  )

/** One label of such a name. */
export const DNS_LABEL = new RegExp(`^${LABEL}$`)
