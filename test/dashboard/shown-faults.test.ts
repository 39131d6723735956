import { describe, expect, it } from 'vitest'
import { effectScope, nextTick, ref } from 'vue'
import { currentFault } from '../../dashboard/src/ui/current-fault.ts'
import { faultBelow, unshownFaults, useShownFaults } from '../../dashboard/src/ui/shown-faults.ts'

/** An input of the form, as text fields and choices are. */
function field(fault: () => string | undefined) {
  const scope = effectScope()
  const value = ref('')
  scope.run(() => currentFault(fault, () => value.value))
  return { value, leave: () => scope.stop() }
}
const paths = (fields: Record<string, string>) =>
  unshownFaults(fields, useShownFaults()).map(([path]) => path)

describe('what the server refuses of a form', () => {
  it('is left to the inputs that show it, and told by name where none does', async () => {
    const refused = ref<Record<string, string>>({})
    const name = field(() => refused.value.name)
    refused.value = { name: 'Is taken.', ssl_mode: 'Must be one of off, acme.' }
    expect(paths(refused.value)).toEqual(['ssl_mode'])
    // What is being corrected was read: its sentence goes, and does not come back as a notice.
    name.value.value = 'other'
    await nextTick()
    expect(paths(refused.value)).toEqual(['ssl_mode'])
    name.leave()
    expect(paths(refused.value)).toEqual(['name', 'ssl_mode'])
  })
  it('is told once too often rather than not at all, where two fields say the same', () => {
    const refused = { name: 'Is required.', project_id: 'Is required.' }
    const name = field(() => refused.name)
    expect(paths(refused)).toEqual(['name', 'project_id'])
    const project = field(() => refused.project_id)
    expect(paths(refused)).toEqual([])
    project.leave()
    name.leave()
  })
  it('is not said again below a form whose inputs show it, and never by the API’s name of a field', () => {
    const said = 'name: is taken.'
    const refused = { name: 'Is taken.', public_addresses: 'Entry 1 must be an IP address.' }
    const below = () => faultBelow(said, refused, useShownFaults())
    expect(below()).toBe('Name: Is taken. Public addresses: Entry 1 must be an IP address.')
    const name = field(() => refused.name)
    expect(below()).toBe('Public addresses: Entry 1 must be an IP address.')
    const addresses = field(() => refused.public_addresses)
    expect(below()).toBe('Not saved: the marked fields say why.')
    expect(faultBelow('The engine is down.', {}, useShownFaults())).toBe('The engine is down.')
    expect(faultBelow(undefined, {}, useShownFaults())).toBeUndefined()
    name.leave()
    addresses.leave()
  })
})
