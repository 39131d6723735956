import type { Change, FieldChange } from '#server/project-file/diff'
import type { Item } from '#server/project-file/items'
import { paint } from '../client/output.ts'
import type { Refusals } from './checks.ts'

const HIDDEN = '********'
const LONGEST = 80

/** Whether a value is none of a reader's: one of a secret, and the text of a mounted file. */
const isHidden = (item: Item, field: string): boolean =>
  (item.fields.secret === true && /value$/.test(field)) || (item.kind === 'mount' && field === 'content')

/** What is shown of a value: of a secret nothing, of a long text its beginning. */
function shown(item: Item, { field }: FieldChange, value: unknown): string {
  if (value === null || value === undefined) return 'nothing'
  if (isHidden(item, field)) return HIDDEN
  const text = JSON.stringify(value)
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text
}
const titleOf = ({ kind, of, name }: Item): string =>
  `${kind} ${paint('bold', name)}${of === undefined ? '' : ` of ${of}`}`

/** What becomes of what the file does not name: it goes, it stays, or that is no question. */
export type Prune = boolean | 'never'

/** The lines of one change. */
function linesOf({ action, item, fields }: Change, prune: Prune, refusal?: string): string[] {
  if (action === 'extra' && prune === 'never') return []
  if (action === 'extra')
    return prune
      ? [`${paint('red', '-')} ${titleOf(item)}`]
      : [`${paint('dim', '?')} ${titleOf(item)} is not in the file; it stays (--prune removes it)`]
  const sign = action === 'create' ? paint('green', '+') : paint('yellow', '~')
  return [
    `${sign} ${titleOf(item)}`,
    ...fields.map((one) => {
      const to = shown(item, one, one.to)
      return `    ${one.field}: ${action === 'create' ? to : `${shown(item, one, one.from)} → ${to}`}`
    }),
    ...(refusal === undefined ? [] : [`    ${paint('red', '✗')} ${refusal}`]),
  ]
}

/** What would be done, as a person reads it. */
export function planText(
  changes: readonly Change[],
  options: { prune: Prune; makes?: string; refusals?: Refusals },
): string {
  const refusals: Refusals = options.refusals ?? new Map()
  const of = (action: Change['action']) => changes.filter((one) => one.action === action).length
  const made = options.makes === undefined ? [] : [`${paint('green', '+')} project ${options.makes}`]
  const removed = options.prune === true ? of('extra') : 0
  const to_make = of('create') + made.length
  const nothing = to_make + of('update') + removed === 0
  return [
    ...made,
    ...changes.flatMap((change) => linesOf(change, options.prune, refusals.get(change))),
    nothing
      ? 'Nothing to do: all is as the file says.'
      : `${to_make} to make, ${of('update')} to change, ${removed} to remove.`,
    ...(refusals.size > 0
      ? [`${refusals.size} would be refused (✗): nothing is done until that is mended.`]
      : []),
  ].join('\n')
}

/** The same for programs. Values of secrets are in neither. */
export const planJson = (changes: readonly Change[], refusals: Refusals = new Map()) =>
  changes.map((change) => ({ ...changeJson(change), refused: refusals.get(change) ?? null }))
const changeJson = ({ action, item, fields }: Change) => ({
  action,
  kind: item.kind,
  of: item.of ?? null,
  name: item.name,
  fields: fields.map((one) => (isHidden(item, one.field) ? { ...one, from: HIDDEN, to: HIDDEN } : one)),
})
