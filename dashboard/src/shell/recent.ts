import { me } from '@/api/session'

/** Pages of single things that were looked at last, for the palette. Names and addresses only. */
export interface Recent {
  label: string
  to: string
}
const KEY = 'recent'
const MOST = 8

/** Those of the person who is logged in: others of this browser see nothing of them. */
export function recentPages(): Recent[] {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? '{}') as { of?: string; pages?: Recent[] }
    return kept.of === me.value?.id ? (kept.pages ?? []) : []
  } catch {
    return []
  }
}
export function rememberPage(page: Recent): void {
  const others = recentPages().filter(({ to }) => to !== page.to)
  localStorage.setItem(KEY, JSON.stringify({ of: me.value?.id, pages: [page, ...others].slice(0, MOST) }))
}
/** Leaves nothing for whoever uses this browser next. */
export const forgetPages = (): void => localStorage.removeItem(KEY)
