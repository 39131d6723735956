import { effectScope, nextTick, ref } from 'vue'
import { expect, it } from 'vitest'
import { currentFault } from '../../dashboard/src/ui/current-fault.ts'

it('what is wrong with a field is said until it is changed, and again when the next try is refused', async () => {
  const fault = ref<string>()
  const value = ref('a b')
  const scope = effectScope()
  const shown = scope.run(() =>
    currentFault(
      () => fault.value,
      () => value.value,
    ),
  )!
  expect(shown.value).toBeUndefined()
  fault.value = 'Must not hold spaces.'
  await nextTick()
  expect(shown.value).toBe('Must not hold spaces.')
  value.value = 'a  b'
  await nextTick()
  expect(shown.value).toBeUndefined()
  // The next try clears it while it is under way.
  fault.value = undefined
  await nextTick()
  fault.value = 'Must not hold spaces.'
  await nextTick()
  expect(shown.value).toBe('Must not hold spaces.')
  scope.stop()
})
