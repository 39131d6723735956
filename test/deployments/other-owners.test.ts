import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { WorkloadOwners } from '#server/platform/engine/workload-reconciler'
import { createTestApi, type TestApi } from '#test/support/api'
import { testWorkload } from '#test/support/workload'

let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
  api.fakes.engine.addImage('postgres:17')
})
afterEach(() => api.close())

const database = { id: 'db_orders', project_id: 'prj_x', release_id: 'rel_orders' }
const owner = { kind: 'task' as const, id: database.id }
const workload = testWorkload({ ...database, owner, image: 'postgres:17', network: 'ptr-x' })
const owners = (more: Partial<WorkloadOwners> = {}): WorkloadOwners => ({
  kind: 'task',
  desired: () => [database],
  processes: () => [{ process: 'web', replicas: 1 }],
  workload: () => workload,
  networks: () => ({ 'ptr-x': {} }),
  busy: () => false,
  releasesAtWork: () => new Set(),
  release: () => ({ owner_id: database.id, stop_grace_s: 5 }),
  ...more,
})
const instances = () => api.fakes.engine.instances({ owner })
const reconcile = () => api.services.deployments.reconciler.reconcile()

describe('the workload of another kind of owner', () => {
  test('is started, started again when it vanished, and removed when nobody wants it any more', async () => {
    let desired = [database]
    api.services.deployments.keepRunning(owners({ desired: () => desired }))
    await reconcile()
    const [first] = await instances()
    expect(first).toMatchObject({ owner, state: 'running' })
    api.fakes.engine.vanish(first!.id)
    await reconcile()
    expect(await instances()).toHaveLength(1)
    desired = []
    await reconcile()
    expect(await instances()).toEqual([])
  })

  test('is left alone while a job works on its owner, and while nobody registered its kind', async () => {
    await api.fakes.engine.ensureNetwork('ptr-x', {})
    await api.fakes.engine.ensureRelease(workload, new AbortController().signal)
    await reconcile()
    api.services.deployments.keepRunning(owners({ desired: () => [], busy: () => true }))
    await reconcile()
    expect(await instances()).toHaveLength(1)
  })

  test('whose volume is gone is not started with an empty one; its owner hears the reason', async () => {
    const reasons: unknown[] = []
    const mounts = [{ kind: 'volume' as const, volume_id: 'vol_gone', path: '/data', read_only: false }]
    api.services.deployments.keepRunning(
      owners({
        workload: () => ({ ...workload, mounts }),
        failed: (_, error) => void reasons.push((error as { code: string }).code),
      }),
    )
    await reconcile()
    expect([reasons, await instances(), api.fakes.engine.volumes()]).toEqual([['volume_missing'], [], []])
  })

  test('that a job took in hand while it was looked at is left to that: a restore brings its volume back', async () => {
    const reasons: unknown[] = []
    let is_busy = false
    const mounts = [{ kind: 'volume' as const, volume_id: 'vol_gone', path: '/data', read_only: false }]
    api.services.deployments.keepRunning(
      owners({
        workload: () => ({ ...workload, mounts }),
        restoring: () => void (is_busy = true),
        busy: () => is_busy,
        failed: (_, error) => void reasons.push(error),
      }),
    )
    await reconcile()
    expect([is_busy, reasons]).toEqual([true, []])
  })
})
