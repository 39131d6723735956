import type { Schemas } from '@/api/client'

type Check = Schemas['UptimeCheck']
/** What the form of a check holds; fields of numbers hold text once they were emptied. */
export interface CheckDraft {
  name: string
  kind: Check['kind']
  target: string
  interval_s: number | string | null
  expected_status: number | string | null
  expected_text: string | null
  days_left: number | string | null
  public: boolean
}

export const blankCheck = (): CheckDraft => ({
  name: '',
  kind: 'http',
  target: '',
  interval_s: 60,
  expected_status: null,
  expected_text: null,
  days_left: null,
  public: false,
})

/** What a form begins with that edits a check. */
export const draftOf = (check: Check): CheckDraft => ({
  name: check.name,
  kind: check.kind,
  target: check.target,
  interval_s: check.interval_s,
  expected_status: check.expected_status,
  expected_text: check.expected_text,
  days_left: check.days_left,
  public: check.public,
})

const numberOf = (typed: number | string | null) => (typed === null || typed === '' ? null : Number(typed))

/** What is sent of a draft: of what only some kinds look at, that of its kind. An empty field expects nothing. */
export function bodyOf({ name, kind, target, interval_s, ...draft }: CheckDraft) {
  const expected = {
    http: {
      expected_status: numberOf(draft.expected_status),
      expected_text: draft.expected_text || null,
    },
    tcp: {},
    tls: { days_left: numberOf(draft.days_left) },
  }
  return { name, target, interval_s: Number(interval_s), public: draft.public, ...expected[kind] }
}
