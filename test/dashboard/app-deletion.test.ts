import { expect, it } from 'vitest'
import { deletionOf } from '../../dashboard/src/features/apps/deletion.ts'

const asked = (choice: { volumes: boolean; skip_backup: boolean }) => {
  const { goes, stays, query } = deletionOf(choice)
  return { goes: goes.join('; '), stays: stays.join('; '), query }
}

it('the deletion of an app says that a final backup is taken, and that its volumes stay', () => {
  const { goes, stays, query } = asked({ volumes: false, skip_backup: false })
  expect(stays).toMatch(/^A final backup of its configuration and variables, taken before/)
  expect(stays).toContain('Databases and volumes that it uses')
  expect(goes).not.toContain('volumes')
  expect(query).toEqual({})
})
it('the deletion of an app may take its volumes along, and then says that they are in the backup', () => {
  const { goes, stays, query } = asked({ volumes: true, skip_backup: false })
  expect(goes).toContain('The volumes that no other app mounts')
  expect(stays).toContain('and of these volumes')
  expect(stays).not.toContain('Databases and volumes')
  expect(query).toEqual({ volumes: true })
})
it('an app whose final backup cannot be taken can be deleted without one, which is not promised then', () => {
  const { stays, query } = asked({ volumes: true, skip_backup: true })
  expect(stays).not.toContain('backup')
  expect(query).toEqual({ volumes: true, skip_backup: true })
})
