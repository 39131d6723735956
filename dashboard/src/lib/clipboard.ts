/** Copies without the clipboard of secure contexts, which is missing on plain HTTP. */
function copyBySelection(text: string): boolean {
  const area = document.createElement('textarea')
  area.value = text
  area.readOnly = true
  area.className = 'fixed top-0 left-0 opacity-0'
  // Inside an open dialog: the focus cannot leave it.
  const place = document.querySelector('[role="dialog"]') ?? document.body
  const before = document.activeElement as HTMLElement | null
  place.append(area)
  area.select()
  const done = document.execCommand('copy')
  area.remove()
  before?.focus()
  return done
}

/** Puts text on the clipboard; false when the browser allows neither way. */
export async function copyText(text: string): Promise<boolean> {
  if (window.isSecureContext && navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text)
      return true
    } catch {
      return copyBySelection(text)
    }
  }
  return copyBySelection(text)
}
