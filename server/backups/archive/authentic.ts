import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import * as v from 'valibot'
import { ArchiveError } from './archive-error.ts'
import { Manifest } from './manifest.ts'

const PURPOSE = 'portreeve manifest'

/** What proves that whoever wrote a manifest has the key of its archive: everything in it, in the order of its schema. */
function proofOf({ proof: _, ...told }: Manifest, data_key: Buffer): string {
  const key = Buffer.from(hkdfSync('sha256', data_key, '', PURPOSE, 32))
  return createHmac('sha256', key).update(JSON.stringify(told)).digest('hex')
}

/** A manifest with its proof. It is parsed first, so that its fields have the order in which they are read. */
export function withProof(told: Manifest, data_key: Buffer): Manifest {
  const manifest = v.parse(Manifest, told)
  return { ...manifest, proof: proofOf(manifest, data_key) }
}

const isProven = (manifest: Manifest, data_key: Buffer): boolean =>
  timingSafeEqual(Buffer.from(proofOf(manifest, data_key)), Buffer.from(manifest.proof!))

const UNPROVEN = 'It does not prove that this installation made it.'

/**
 * Throws for a manifest that somebody changed, who did not have the key of the archive; one whose proof was taken
 * away may have been changed, too.
 */
export function checkProof(manifest: Manifest, data_key: Buffer): void {
  if (manifest.proof === undefined) throw new ArchiveError('damaged', UNPROVEN)
  if (isProven(manifest, data_key)) return
  throw new ArchiveError('damaged', 'Somebody changed the manifest beside the archive.')
}

/**
 * Why a manifest that was found at a destination, and that nobody named, says nothing that can be relied on;
 * undefined when it can. Whoever may write there could lay one with another time or another target, or copy an old
 * one under a newer name.
 */
export function doubt(manifest: Manifest, object_key: string, data_key: Buffer): string | undefined {
  if (manifest.proof === undefined) return UNPROVEN
  if (!isProven(manifest, data_key)) return 'Somebody changed it.'
  const { kind, id } = manifest.target
  if (object_key !== `${kind}/${id ?? 'installation'}/${manifest.archive}`)
    return 'It is not where it was written.'
  return undefined
}
