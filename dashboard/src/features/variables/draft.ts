import type { Schemas } from '@/api/client'
import type { Assignment } from '@/lib/dotenv'
import { type Change, type Entry, MASK } from './diff.ts'
import type { Variable } from './place.ts'

/** Where a variable is used, as one choice; empty: as it is used already, or everywhere. */
export type Use = '' | 'build,runtime' | 'runtime' | 'build'

/** A variable that is being written. */
export interface DraftRow {
  id: number
  key: string
  value: string
  use: Use
  secret: boolean
  comment: string
  /** Begun from a variable that exists, as it was then: its key stays, and an empty value keeps a secret. */
  began?: { secret: boolean; version: number }
}
type Import = Schemas['VariableImport']
type Detail = NonNullable<Import['details']>[string]

const isEmpty = ({ key, value, comment, began }: DraftRow) =>
  !began && key === '' && value === '' && comment === ''
const idAfter = (rows: readonly DraftRow[]) => Math.max(0, ...rows.map(({ id }) => id)) + 1
const rowOf = (id: number, { key, value, comment }: Partial<Assignment> = {}): DraftRow => ({
  id,
  key: key ?? '',
  value: value ?? '',
  use: '',
  secret: false,
  comment: comment ?? '',
})

/** An empty row at the end; one that is there already serves again. */
export function addRow(rows: DraftRow[]): number {
  const last = rows.at(-1)
  if (last && isEmpty(last)) return last.id
  const id = idAfter(rows)
  rows.push(rowOf(id))
  return id
}

/** The row of a variable that exists. */
export function editRow(
  rows: DraftRow[],
  { key, value, secret, scopes, comment, version }: Variable,
): number {
  const there = rows.find((row) => row.key === key)
  if (there) return there.id
  const id = idAfter(rows)
  const use = [...scopes].sort().join(',') as Use
  rows.push({
    ...rowOf(id, { key, value: secret ? '' : (value ?? ''), comment }),
    use,
    secret,
    began: { secret, version },
  })
  return id
}

/** Puts assignments into rows: one of the same key gets the value, the others follow the row they were pasted into. */
export function spread(rows: DraftRow[], found: readonly Assignment[], into?: number): void {
  let place = rows.findIndex(({ id }) => id === into)
  if (place < 0) place = rows.length - 1
  for (const one of found) {
    const there = rows.find(({ key }) => key === one.key)
    if (there) {
      there.value = one.value
      there.comment ||= one.comment ?? ''
      continue
    }
    const here = rows[place]
    if (here && isEmpty(here))
      Object.assign(here, { key: one.key, value: one.value, comment: one.comment ?? '' })
    else rows.splice(++place, 0, rowOf(idAfter(rows), one))
  }
}

/** Whoever was told what somebody else changed has seen it: what they save now takes its place. */
export function seeAgain(
  rows: readonly DraftRow[],
  known: readonly Pick<Variable, 'key' | 'version'>[],
): void {
  for (const { key, began } of rows)
    if (began) began.version = known.find((one) => one.key === key)?.version ?? 0
}

/** What is wrong with a row, as far as the page knows. */
export function faultOf(rows: readonly DraftRow[], row: DraftRow): string | undefined {
  const key = row.key.trim()
  if (key === '') return isEmpty(row) ? undefined : 'Give it a key.'
  if (!/^[A-Za-z_]\w*$/.test(key)) return 'Must be letters, digits and _, and not begin with a digit.'
  return rows.some((other) => other.id < row.id && other.key.trim() === key)
    ? 'Stands above already.'
    : undefined
}

/** What saving the draft would do. */
export function changesOf(rows: readonly DraftRow[], known: readonly Entry[]): Change[] {
  const before = new Set(known.map(({ key }) => key))
  return rows
    .filter((row) => !isEmpty(row))
    .map(({ key }) => ({ key: key.trim(), kind: before.has(key.trim()) ? 'changed' : 'added' }))
}

/** What the API is asked to do: all rows in one call, so that all are stored or none. */
export function importOf(rows: readonly DraftRow[]): Import {
  const written = rows.filter((row) => !isEmpty(row))
  const valueOf = ({ value, began }: DraftRow) => (began?.secret && value === '' ? MASK : value)
  const detailOf = ({ use, secret, comment, began }: DraftRow): Detail => ({
    ...(use === '' ? {} : { scopes: use.split(',') as ('build' | 'runtime')[] }),
    // Names such as API_TOKEN are secret by themselves; the box can only add to that.
    ...(secret || began ? { secret } : {}),
    ...(comment || began ? { comment: comment || null } : {}),
  })
  return {
    mode: 'merge',
    variables: Object.fromEntries(written.map((row) => [row.key.trim(), valueOf(row)])),
    details: Object.fromEntries(written.map((row) => [row.key.trim(), detailOf(row)])),
    ...(written.some(({ began }) => began)
      ? {
          versions: Object.fromEntries(
            written.flatMap(({ key, began }) => (began ? [[key, began.version]] : [])),
          ),
        }
      : {}),
  }
}

/** The key that a refused field is about: `variables.KEY`, `variables: KEY`, `details.KEY.comment`. */
export const keyOfField = (path: string): string | undefined =>
  /^(?:variables|details)(?:\.|: )([A-Za-z_]\w*)/.exec(path)?.[1]
