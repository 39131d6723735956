import { expect, it } from 'vitest'
import { watchedBy } from '../../dashboard/src/features/monitoring/metrics.ts'

it('says what raises an alert in words, not in those of the API', () => {
  const limits = { comparison: 'above' as const, threshold: 85, for_s: 60 }
  expect(watchedBy({ metric: 'disk_percent', ...limits })).toBe('Disk in use (%) above 85 for 60 s')
  expect(watchedBy({ metric: 'error_percent', ...limits })).toBe('Failed requests (%) above 85 for 60 s')
  expect(watchedBy({ ...limits, metric: null })).toBe('What happens')
})
