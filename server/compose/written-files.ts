import { posix } from 'node:path'
import { isWithin } from '#server/kernel/mount-path'
import type { ServiceContext } from './context.ts'
import { at } from './issues.ts'
import type { ComposeMount } from './model.ts'

const IN_MEMORY =
  'Files of the service are put into this folder before it starts, so it is on the disk: in memory it would hide them.'
const WRITABLE = 'The service has files that are put into its root before it starts, so that stays writable.'

/** People write `/run/` as well. */
const plain = (path: string) => posix.normalize(path).replace(/(?<=.)\/$/, '')
const lies = (inner: ComposeMount, outer: ComposeMount) => isWithin(plain(inner.path), plain(outer.path))

/**
 * What becomes of mounts and of a root that nothing may be written to, given the files of a service. The engine puts
 * these in before the first start, when there is no folder in memory yet, and refuses to for a root that is read only.
 */
export function settleFiles(
  { found }: ServiceContext,
  { mounts, read_only }: { mounts: readonly ComposeMount[]; read_only: boolean },
  path: string,
): { mounts: ComposeMount[]; read_only: boolean } {
  const files = mounts.filter(({ kind }) => kind === 'file')
  const hides = (mount: ComposeMount) => mount.kind === 'tmpfs' && files.some((file) => lies(file, mount))
  const takes = (file: ComposeMount) =>
    mounts.some((mount) => mount.kind === 'volume' && !mount.read_only && lies(file, mount))
  if (mounts.some(hides)) found.ignored.push({ path: at(path, 'tmpfs'), text: IN_MEMORY })
  const is_writable = read_only && !files.every(takes)
  if (is_writable) found.ignored.push({ path: at(path, 'read_only'), text: WRITABLE })
  return { mounts: mounts.filter((mount) => !hides(mount)), read_only: read_only && !is_writable }
}
