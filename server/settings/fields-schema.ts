import * as v from 'valibot'
import { hasControl } from '#server/kernel/one-line'
import { MASK, SECRET } from '#server/kernel/schemas'
import { hostNameFault, readHostName } from './host-name.ts'

/** What every description of a secret says. */
export const KEPT = `Answers show \`${MASK}\` when one is set. Sent back as \`${MASK}\`, or left out, the stored one is kept as long as it goes to the same place; null removes it.`

export const OneLine = (max: number) =>
  v.pipe(
    v.string(),
    v.trim(),
    v.minLength(1),
    v.maxLength(max),
    v.check((text) => !hasControl(text), 'must be one line of text.'),
  )
export const Secret = (what: string) =>
  v.optional(
    v.nullable(
      v.pipe(
        v.string(),
        v.minLength(1),
        v.maxLength(8192),
        v.check((text) => !hasControl(text), 'must be one line of text.'),
        v.description(`${what} ${KEPT}`),
        v.examples([MASK]),
        SECRET,
      ),
    ),
  )
export const Port = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(65535))

/**
 * A DNS name in ASCII, lower case and without the dot of the root; IDN is turned into it. Neither an address
 * nor a wildcard.
 */
export const HostName = (what: string, example: string) =>
  v.pipe(
    v.string(),
    v.maxLength(1024),
    v.rawTransform(({ dataset, addIssue, NEVER }) => {
      const fault = hostNameFault(dataset.value)
      if (fault === undefined) return readHostName(dataset.value)
      addIssue({ message: fault })
      return NEVER
    }),
    v.description(what),
    v.examples([example]),
  )

export const Email = v.pipe(
  v.string(),
  v.trim(),
  v.maxLength(254),
  v.regex(/^[^\s@<>"(),:;\\]+@[^\s@<>"(),:;\\]+$/, 'must be an e-mail address.'),
)
