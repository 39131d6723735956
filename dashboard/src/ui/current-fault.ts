import { computed, type ComputedRef, ref, watch } from 'vue'
import { tellShownFault } from './shown-faults.ts'

/** What is wrong with a field, until it is changed: of the new value nobody has said anything yet. */
export function currentFault(
  fault: () => string | undefined,
  value: () => unknown,
): ComputedRef<string | undefined> {
  tellShownFault(fault)
  const outdated = ref(false)
  watch(fault, () => (outdated.value = false))
  watch(value, () => (outdated.value = true))
  return computed(() => (outdated.value ? undefined : fault()))
}
