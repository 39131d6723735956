import { createHash } from 'node:crypto'
import { own } from '#server/kernel/own'
import { type Item, ITEM_KINDS, itemsOf, keyOf, listOf } from './items.ts'
import type { ProjectFile } from './schema.ts'

/** One field that is not as the file says; values of secrets are never among these. */
export interface FieldChange {
  field: string
  from: unknown
  to: unknown
}
export interface Change {
  /** `extra` is there and not in the file: it stays unless it is asked to go. */
  action: 'create' | 'update' | 'extra'
  item: Item
  /** As it runs. */
  live?: Item
  fields: FieldChange[]
}

/** Null, an empty object and nothing at all say the same; the order of keys says nothing. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(plain)
  if (typeof value !== 'object' || value === null) return value ?? undefined
  const entries = Object.entries(value)
    .map(([key, inner]) => [key, plain(inner)] as const)
    .filter(([, inner]) => inner !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

type Fields = Record<string, unknown>
/** Fields that the file leaves out keep what they are; while it is off, none of them counts. */
const archiveFits = (desired: Fields, live: Fields | null): boolean =>
  desired.enabled === false
    ? live?.enabled !== true
    : Object.entries(desired).every(([key, value]) => (own(live, key) ?? null) === (value ?? null))

/** Of a text that is mounted only the digest is told, and that not to everybody: who may not compare, changes nothing. */
function isSameText(expected: unknown, live: unknown): boolean {
  if (live === null || live === undefined) return false
  const digest = own(live as Fields, 'sha256')
  return digest === null || digest === createHash('sha256').update(String(expected)).digest('hex')
}

/** Whether what runs is what the file asks for. */
function fits({ kind }: Item, field: string, wanted: unknown, live: unknown): boolean {
  // A release line is fulfilled by each release of it.
  if (kind === 'database' && field === 'version' && typeof live === 'string')
    return live === wanted || live.startsWith(`${String(wanted)}.`)
  // The limits of a database change one by one.
  if (kind === 'database' && field === 'limits')
    return Object.entries(wanted as object).every(
      ([key, value]) => own(live as Record<string, unknown>, key) === value,
    )
  if (kind === 'database' && field === 'point_in_time') return archiveFits(wanted as Fields, live as Fields)
  if (kind === 'mount' && field === 'content') return isSameText(wanted, live)
  return JSON.stringify(plain(wanted)) === JSON.stringify(plain(live))
}

/** What has to happen so that a project is as its file says, in the order in which it can. */
export function changesOf(file: ProjectFile, live: readonly Item[]): Change[] {
  const { items, stated } = itemsOf(file)
  const running = new Map(live.map((item) => [keyOf(item), item]))
  const wanted = new Set(items.map(keyOf))
  const changes = items.flatMap((item): Change[] => {
    const now = running.get(keyOf(item))
    const fields = Object.entries(item.fields)
      .filter(([field]) => field !== 'source' || now === undefined)
      .map(([field, to]): FieldChange => ({ field, from: own(now?.fields, field) ?? null, to }))
      .filter(({ field, from, to }) => !now || !fits(item, field, to, from))
    if (!now) return [{ action: 'create', item, fields }]
    return fields.length === 0 ? [] : [{ action: 'update', item, live: now, fields }]
  })
  const extras = live
    .filter((item) => !wanted.has(keyOf(item)) && stated.has(listOf(item)))
    .map((item): Change => ({ action: 'extra', item, live: item, fields: [] }))
  const rank = ({ item, action }: Change) => {
    const at = ITEM_KINDS.indexOf(item.kind)
    // What needs another goes before it.
    return action === 'extra' ? 2 * ITEM_KINDS.length - at : at
  }
  return [...changes, ...extras].sort((a, b) => rank(a) - rank(b))
}
