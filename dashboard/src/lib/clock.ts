import { ref } from 'vue'

/** The time that relative times are told by; moves every ten seconds, for the whole page at once. */
export const now = ref(Date.now())

/** Moves each second, for what is under way. */
export const second = ref(Date.now())

export function startClock(): void {
  setInterval(() => {
    second.value = Date.now()
    if (second.value - now.value >= 10_000) now.value = second.value
  }, 1000)
}
