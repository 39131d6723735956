import type { FakeExecOutcome } from '#server/platform/engine/fake/behaviour'
import type { ContainerSpec, ExecSpec } from '#server/platform/engine/workload'
import { EDGE_IMAGE } from '#server/platform/ingress/image'
import type { TestApi } from '#test/support/api'

/** What pretended volumes hold, as text, by the engine's name of their data. */
export interface PretendedVolumes {
  held: Map<string, string>
  /** How the next commands of a kind end; it goes on until it is removed. */
  failing: Map<'read' | 'write' | 'count' | 'look', FakeExecOutcome>
  /** Called while a volume is read, or written, which ends no sooner than what it promises. */
  onRead?: () => unknown
  onWrite?: () => unknown
}

function kindOf(command: readonly string[]) {
  if (command.includes('--extract')) return 'write'
  if (command.includes('-quit')) return 'look'
  return command[0] === 'find' ? 'count' : 'read'
}

/** Lets the container that reads and writes volumes find texts in them in the place of files. */
export function pretendVolumes(api: TestApi): PretendedVolumes {
  const pretended: PretendedVolumes = { held: new Map(), failing: new Map() }
  const exec = async (
    { command }: ExecSpec,
    input: Buffer,
    { mounts = [] }: ContainerSpec,
  ): Promise<FakeExecOutcome> => {
    const [mount] = mounts
    const id = mount?.kind === 'volume' ? mount.volume_id : ''
    const kind = kindOf(command)
    if (kind === 'read') await pretended.onRead?.()
    if (kind === 'write') await pretended.onWrite?.()
    const failure = pretended.failing.get(kind)
    if (failure) return failure
    if (kind === 'look') return {}
    const text = pretended.held.get(id) ?? ''
    if (kind === 'count') return { stdout: text && `f ${text.length} a/text\0d 4096 a\0` }
    if (kind === 'read') return { stdout: text }
    pretended.held.set(id, input.toString())
    return {}
  }
  api.fakes.engine.behave(EDGE_IMAGE, { exec, start: 'never_listens' })
  return pretended
}
