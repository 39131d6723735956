import { computed, type MaybeRefOrGetter, reactive, toValue, watch } from 'vue'

/** What somebody has begun to change, and what it was when they began. */
interface Draft {
  base: string
  value: unknown
}
/** What drafts are kept in between two loads of the page. */
export type Keep = Pick<Storage, 'getItem' | 'setItem' | 'removeItem' | 'key' | 'length'>

const PREFIX = 'draft:'
const OWNER = 'drafts-of'
const drafts = reactive(new Map<string, Draft>())
let keep: Keep | undefined

/** Lets drafts survive a reload of this tab. */
export function keepDrafts(storage: Keep): void {
  keep = storage
}

/** Says whose drafts are kept from now on: what somebody else left in this tab is nobody's business. */
export function keepDraftsOf(person: string | undefined): void {
  if (!keep || keep.getItem(OWNER) === (person ?? null)) return
  const { length } = keep
  const keys = Array.from({ length }, (_, at) => keep?.key(at) ?? '')
  for (const key of keys) if (key.startsWith(PREFIX)) keep.removeItem(key)
  drafts.clear()
  if (person === undefined) keep.removeItem(OWNER)
  else keep.setItem(OWNER, person)
}

function remembered(key: string): Draft | undefined {
  const known = drafts.get(key)
  if (known) return known
  const text = keep?.getItem(PREFIX + key)
  if (!text) return undefined
  try {
    drafts.set(key, JSON.parse(text) as Draft)
  } catch {
    keep?.removeItem(PREFIX + key)
  }
  return drafts.get(key)
}

const copy = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T

/**
 * Takes into a draft what the server says by now, field by field: what was not edited is as the
 * server has it, so that saving the others does not put it back. An edited field keeps what it
 * began from, by which it is known that somebody else has changed it, too.
 */
function follow(draft: Draft, given: string): Draft {
  const now = JSON.parse(given) as Record<string, unknown>
  const base = JSON.parse(draft.base) as Record<string, unknown>
  const value = draft.value as Record<string, unknown>
  const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)
  const isEdited = (field: string) =>
    field in value && !same(value[field], base[field]) && !same(value[field], now[field])
  const fields = Object.keys(now)
  return {
    base: JSON.stringify(
      Object.fromEntries(fields.map((field) => [field, isEdited(field) ? base[field] : now[field]])),
    ),
    value: Object.fromEntries(fields.map((field) => [field, (isEdited(field) ? value : now)[field]])),
  }
}

/**
 * A form over something of the server's. What arrives from the server never writes into a field
 * that has been edited; where somebody else has changed that one, too, the form is `stale` and says
 * so.
 * @param key names the form, together with what it is about: `app_…/settings`.
 * @param source what the server says; undefined while it is loading.
 * @param secret fields that are never kept beyond this page; `all`: it ends with the page as a whole.
 */
export function useDraft<T extends object>(
  key: MaybeRefOrGetter<string>,
  source: () => T | undefined,
  secret: readonly (keyof T & string)[] | 'all' = [],
) {
  const current = computed(() => remembered(toValue(key)))
  const given = computed(() => JSON.stringify(source()))
  const dirty = computed(() => {
    const draft = current.value
    return draft !== undefined && JSON.stringify(draft.value) !== draft.base
  })
  const stale = computed(
    () => dirty.value && given.value !== undefined && given.value !== current.value?.base,
  )
  const reset = () => {
    const text = given.value
    keep?.removeItem(PREFIX + toValue(key))
    if (text !== undefined) drafts.set(toValue(key), { base: text, value: JSON.parse(text) })
  }
  watch(
    [given, () => toValue(key)],
    () => {
      if (given.value === undefined) return
      if (!dirty.value) return reset()
      if (given.value !== current.value!.base) drafts.set(toValue(key), follow(current.value!, given.value))
    },
    { immediate: true },
  )
  watch(
    () => JSON.stringify(current.value?.value),
    () => {
      const draft = current.value
      if (!draft || !keep || secret === 'all') return
      if (!dirty.value) return keep.removeItem(PREFIX + toValue(key))
      const open = copy(draft.value) as Record<string, unknown>
      for (const field of secret) open[field] = ''
      try {
        keep.setItem(PREFIX + toValue(key), JSON.stringify({ base: draft.base, value: open }))
      } catch {
        // There is no room for it: then it ends with the page, which must not fail by it.
        keep.removeItem(PREFIX + toValue(key))
      }
    },
  )
  return reactive({
    /** The fields, to bind inputs to; undefined while loading. */
    value: computed(() => current.value?.value as T | undefined),
    /** Whether something was edited. */
    dirty,
    /** Whether a field that was edited has changed on the server meanwhile. */
    stale,
    /** Fields that were edited, with their values. */
    changes: () => {
      const draft = current.value
      if (!draft) return {} as Partial<T>
      const before = JSON.parse(draft.base) as T
      const after = draft.value as T
      const edited = (Object.keys(after) as (keyof T)[]).filter(
        (field) => JSON.stringify(after[field]) !== JSON.stringify(before[field]),
      )
      return Object.fromEntries(edited.map((field) => [field, after[field]])) as Partial<T>
    },
    /** Takes what the server says, and gives up what was edited. */
    reset,
  })
}
