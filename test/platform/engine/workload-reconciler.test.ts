import { expect, it } from 'vitest'
import type { Engine, EngineEvent, Instance } from '#server/platform/engine/engine'
import { createWorkloadReconciler, type WorkloadOwners } from '#server/platform/engine/workload-reconciler'
import { createFakeEngine } from '#server/platform/engine/fake/fake'
import { createLog } from '#server/kernel/log'
import { roundsDuring, toil } from '#test/support/rounds'
import { testWorkload } from '#test/support/workload'

const log = createLog('json', 'error', () => {})
const ownersOf = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ id: `own_${n}`, project_id: 'prj_x', release_id: `rel_${n}` }))
type Owner = ReturnType<typeof ownersOf>[number]

/** One instance of each owner, as the engine tells them; hears of each look at whose it is. */
const instancesOf = (owners: readonly Owner[], looked: () => void) =>
  owners.map(({ id, project_id, release_id }) =>
    Object.defineProperty(
      {
        id: `ins_${id}`,
        project_id,
        release_id,
        process: 'web',
        index: 0,
        state: 'running',
        address: '10.0.0.2',
      },
      'owner',
      {
        get() {
          looked()
          return { kind: 'task', id }
        },
      },
    ),
  ) as unknown as Instance[]

const kindOf = (desired: () => Owner[], more: Partial<WorkloadOwners> = {}): WorkloadOwners => ({
  kind: 'task',
  desired,
  processes: () => [{ process: 'web', replicas: 1 }],
  workload: ({ id, project_id, release_id }) =>
    testWorkload({ project_id, release_id, owner: { kind: 'task', id }, image: 'app:1', network: 'ptr-x' }),
  networks: () => ({ 'ptr-x': {} }),
  busy: () => false,
  releasesAtWork: () => new Set(),
  release: () => undefined,
  ...more,
})
const reconcilerOf = (engine: Partial<Engine>, kind: WorkloadOwners) =>
  createWorkloadReconciler({ engine: engine as Engine, log, kinds: () => [kind] })

it('a pass over many that run as they should keeps nobody waiting', async () => {
  const owners = ownersOf(40)
  const kind = kindOf(() => owners, { observed: toil })
  const reconciler = reconcilerOf({ instances: async () => instancesOf(owners, () => {}) }, kind)
  expect(await roundsDuring(reconciler.reconcile)).toBeGreaterThan(owners.length / 2)
})

it('a pass looks at each instance a few times, however many owners there are', async () => {
  let looks = 0
  const owners = ownersOf(200)
  const reconciler = reconcilerOf(
    { instances: async () => instancesOf(owners, () => (looks += 1)) },
    kindOf(() => owners),
  )
  await reconciler.reconcile()
  expect(looks / owners.length).toBeLessThanOrEqual(5)
})

it('what is stopped during a pass is not started by it', async () => {
  const engine = createFakeEngine()
  engine.addImage('app:1')
  let desired = ownersOf(2)
  const observed: string[] = []
  const kind = kindOf(() => desired, {
    observed({ id }) {
      observed.push(id)
      desired = desired.slice(0, 1)
    },
  })
  await reconcilerOf(engine, kind).reconcile()
  expect(observed).toEqual(['own_0'])
  expect(await engine.instances({})).toHaveLength(1)
  await engine.close()
})

it('an owner of which the engine tells something during a pass is looked at by the next one, which follows', async () => {
  const owners = ownersOf(2)
  const observed: string[] = []
  let asked = 0
  let tell: (event: EngineEvent) => void = () => {}
  const told = new Promise<EngineEvent>((resolve) => (tell = resolve))
  const kind = kindOf(() => owners, {
    async observed({ id }) {
      observed.push(`${id} of pass ${asked}`)
      if (asked !== 2 || id !== 'own_0') return
      tell({
        kind: 'die',
        owner: { kind: 'task', id: 'own_1' },
        release_id: 'rel_1',
        instance_id: 'i',
      } as never)
      await new Promise((resolve) => setTimeout(resolve, 0))
    },
  })
  const reconciler = reconcilerOf(
    {
      version: async () => ({}) as never,
      async instances() {
        asked += 1
        return instancesOf(owners, () => {})
      },
      async *events() {
        // The second pass is under way when it is told.
        void reconciler.reconcile()
        yield await told
        await new Promise(() => {})
      },
    },
    kind,
  )
  await reconciler.start()
  await expect.poll(() => observed).toContain('own_1 of pass 3')
  expect(observed).not.toContain('own_1 of pass 2')
  void reconciler.stop()
})

it('what a job has made live during a pass is not removed as an orphan', async () => {
  const owners = ownersOf(1)
  const removed: string[] = []
  const [old] = owners
  const made = { ...old!, release_id: 'rel_new' }
  let live = old!
  const kind = kindOf(() => [live], {
    observed() {
      live = made
    },
  })
  const reconciler = reconcilerOf(
    {
      instances: async () => instancesOf([old!, made], () => {}),
      removeRelease: async (id: string) => void removed.push(id),
    },
    kind,
  )
  await reconciler.reconcile()
  expect(removed).toEqual([])
})
