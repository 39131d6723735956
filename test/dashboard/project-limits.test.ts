import { expect, it } from 'vitest'
import { limitsOf, quotasOf } from '../../dashboard/src/features/projects/limits.ts'

const GIB = 1024 ** 3

it('limits of a project are shown in GiB, and those that are not set as none', () => {
  expect(limitsOf({ apps: 3, memory_bytes: 1.5 * GIB, storage_bytes: null, backup_bytes: 2 * GIB })).toEqual({
    apps: 3,
    domains: null,
    databases: null,
    volumes: null,
    cpus: null,
    memory_bytes: 1.5,
    storage_bytes: null,
    backup_bytes: 2,
  })
})
it('a changed limit of a project leaves the others as they are, those that no field shows too', () => {
  const quotas = { apps: 3, cpus: 2, cron_jobs: 7, memory_bytes: GIB }
  expect(quotasOf(quotas, { memory_bytes: 0.3, cpus: 0.5 })).toEqual({
    ...quotas,
    cpus: 0.5,
    memory_bytes: Math.round(0.3 * GIB),
  })
})
it('a limit of a project that is emptied is none, and one of zero is kept', () => {
  expect(quotasOf({ apps: 3, volumes: 1 }, { apps: '', volumes: 0 })).toEqual({ apps: null, volumes: 0 })
})
