import { createPool, inPlace } from '#server/kernel/jobs/pool'
import type { Acme, KeyType } from '#server/platform/acme/acme'

/** Makes the key of a certificate of this project, once it is its turn. */
export type MakeKey = (project_id: string, type: KeyType, signal?: AbortSignal) => Promise<string>

/**
 * One key at a time, by turns of the projects: an RSA key takes one of the few threads on which this process reads
 * files and compares passwords for a tenth of a second or more.
 */
export function createKeys(acme: Pick<Acme, 'createKey'>): MakeKey {
  const turns = createPool(1, { others: () => true })
  return (project_id, type, signal) => inPlace(turns, project_id, () => acme.createKey(type), signal)
}
