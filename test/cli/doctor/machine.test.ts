import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Patient } from '../../../cli/doctor/finding.ts'
import { MACHINE } from '../../../cli/doctor/machine.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portreeve-doctor-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const look = (name: string, patient: Partial<Patient> = {}) =>
  MACHINE.find((one) => one.name === name)!.look({
    ...{ config: { data_directory: folder }, env: {}, is_running: false, ...patient },
  } as Patient)

it.runIf(process.getuid?.() === 0)(
  'a file system that cannot be written is told as one, not as a fault of the user or of the folder',
  async () => {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'ro', 'tmpfs', folder])
    try {
      const { state, says, remedy } = await look('data folder')
      expect([state, says]).toEqual(['fault', `${folder} is on a file system that is read-only.`])
      expect(remedy).toMatch(/dmesg.*remount,rw/)
    } finally {
      execFileSync('umount', [folder])
    }
  },
)
it('whether the key fits is not known while the database cannot be read', async () => {
  expect(await look('secret key', { db_fault: 'It cannot be used.' })).toEqual({
    state: 'note',
    says: 'Whether the key fits cannot be told while the database cannot be read.',
  })
})
