import { createMachine } from '#server/kernel/machine'
import type { VolumeStatus } from './schema.ts'

/** What happens to a volume. `lose`: it is no longer on the server; `reappear`: it is there again. */
export type VolumeEventName = 'make' | 'lose' | 'reappear' | 'delete' | 'keep'

export const volumeMachine = createMachine<VolumeStatus, VolumeEventName>('a volume', {
  creating: { make: 'ready', delete: 'deleting' },
  ready: { make: 'ready', lose: 'missing', reappear: 'ready', delete: 'deleting' },
  missing: { lose: 'missing', reappear: 'ready', delete: 'deleting' },
  deleting: { keep: 'ready', delete: 'deleting' },
})
