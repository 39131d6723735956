import { ref } from 'vue'

export type Theme = 'light' | 'dark' | 'system'
const read = (): Theme => (document.documentElement.dataset.theme as Theme | undefined) ?? 'system'

/** The look that was chosen in this browser. */
export const theme = ref<Theme>('system')

export function startTheme(): void {
  theme.value = read()
}

/** Chooses a look; kept in a cookie, so that the server sends the next page in it at once. */
export function chooseTheme(next: Theme): void {
  theme.value = next
  if (next === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = next
  const keep = next === 'system' ? 'max-age=0' : 'max-age=31536000'
  // biome-ignore lint/suspicious/noDocumentCookie: the other way needs a secure context
  document.cookie = `theme=${next}; path=/; samesite=lax; ${keep}`
}
