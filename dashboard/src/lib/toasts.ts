import { shallowRef } from 'vue'

export interface Toast {
  id: number
  tone: 'good' | 'bad' | 'info'
  text: string
  /** Where the message leads. */
  to?: string
  action?: string
}

/** How long a message stays; one about a failure stays until it is closed. */
const STAYS_MS = 5000
let last = 0

export const toasts = shallowRef<readonly Toast[]>([])

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id)
}

/** Tells something in the corner of the page. */
export function tell(tone: Toast['tone'], text: string, more: Pick<Toast, 'to' | 'action'> = {}): void {
  last += 1
  const toast = { id: last, tone, text, ...more }
  toasts.value = [...toasts.value.slice(-3), toast]
  if (tone !== 'bad') setTimeout(() => dismiss(toast.id), STAYS_MS)
}
