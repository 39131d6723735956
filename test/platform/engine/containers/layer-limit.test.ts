import { beforeEach, describe, expect, it } from 'vitest'
import { EngineError } from '#server/platform/engine/engine'
import {
  createLayerLimit,
  type LayerOption,
  mayLimit,
  type StorageFacts,
} from '#server/platform/engine/containers/layer-limit'

const XFS: StorageFacts = { Driver: 'overlay2', DriverStatus: [['Backing Filesystem', 'xfs']] }
const EXT4: StorageFacts = { Driver: 'overlay2', DriverStatus: [['Backing Filesystem', 'extfs']] }
const LIMIT = 10 * 1024 ** 3
/** The engine's own words, on XFS without project quotas. */
const NO_QUOTA = "--storage-opt is supported only for overlay over xfs with 'pquota' mount option"

let now: number
let notes: string[]
let asked: LayerOption[]
beforeEach(() => {
  now = 0
  notes = []
  asked = []
})
const limitOn = (facts: StorageFacts | Error, bytes: number | undefined = LIMIT) =>
  createLayerLimit(
    { call: (async () => (facts instanceof Error ? Promise.reject(facts) : facts)) as never },
    bytes,
    (note) => notes.push(note),
    () => now,
  )
const create = async (option: LayerOption) => {
  asked.push(option)
  return asked.length
}
const LIMITED = { StorageOpt: { size: String(LIMIT) } }

it.each([
  [{ Driver: 'btrfs', DriverStatus: null }, true],
  [{ Driver: 'zfs' }, true],
  [XFS, true],
  [EXT4, false],
  [{ Driver: 'overlayfs', DriverStatus: [['driver-type', 'io.containerd.snapshotter.v1']] }, false],
  [{}, false],
] as [StorageFacts, boolean][])('%j may limit layers: %s', (facts, able) => {
  expect(mayLimit(facts)).toBe(able)
})

describe('a container', () => {
  it('is made with the size where the storage can limit it, and without where it cannot', async () => {
    await limitOn({ Driver: 'btrfs' }).within(create)
    await limitOn(EXT4).within(create)
    expect(asked).toEqual([LIMITED, {}])
  })
  it('is made without where nobody asked for a limit, or the engine does not say how it stores', async () => {
    await createLayerLimit({ call: (async () => XFS) as never }, undefined, () => {}).within(create)
    await limitOn(new EngineError('unavailable', 'It does not answer.')).within(create)
    expect(asked).toEqual([{}, {}])
  })
  it('is made without when the storage refuses it, which is told once and tried again after ten minutes', async () => {
    let has_quota = false
    const refusing = async (option: LayerOption) => {
      asked.push(option)
      if (option.StorageOpt && !has_quota) throw new EngineError('failed', NO_QUOTA)
    }
    const limit = limitOn(XFS)
    await limit.within(refusing)
    await limit.within(refusing)
    expect(asked).toEqual([LIMITED, {}, {}])
    expect(notes).toEqual([expect.stringContaining('so they are watched')])
    has_quota = true
    now = 601_000
    await limit.within(refusing)
    expect(asked.slice(3)).toEqual([LIMITED])
  })
  it('is not made a second time after another failure', async () => {
    const failing = async (option: LayerOption) => {
      asked.push(option)
      throw new EngineError('conflict', 'The name is taken.')
    }
    await expect(limitOn(XFS).within(failing)).rejects.toThrow('The name is taken.')
    expect(asked).toEqual([LIMITED])
  })
})
