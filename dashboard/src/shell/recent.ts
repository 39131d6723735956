/** Pages of single things that were looked at last, for the palette. Names and addresses only. */
export interface Recent {
  label: string
  to: string
}
const KEY = 'recent'
const MOST = 8

export function recentPages(): Recent[] {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '[]') as Recent[]
  } catch {
    return []
  }
}
export function rememberPage(page: Recent): void {
  const others = recentPages().filter(({ to }) => to !== page.to)
  localStorage.setItem(KEY, JSON.stringify([page, ...others].slice(0, MOST)))
}
