import { computed, type ComputedRef, ref, watch } from 'vue'

/** What is wrong with a field, until it is changed: of the new value nobody has said anything yet. */
export function currentFault(
  fault: () => string | undefined,
  value: () => unknown,
): ComputedRef<string | undefined> {
  const outdated = ref(false)
  watch(fault, () => (outdated.value = false))
  watch(value, () => (outdated.value = true))
  return computed(() => (outdated.value ? undefined : fault()))
}
