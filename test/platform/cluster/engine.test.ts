import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createClusterEngine, type Placing } from '#server/platform/cluster/engine'
import type { EngineMember } from '#server/platform/cluster/engine-member'
import type { Engine, EngineEvent, Instance } from '#server/platform/engine/engine'
import { createFakeEngine, type FakeEngine } from '#server/platform/engine/fake/fake'
import { poll } from '#test/support/poll'
import { testWorkload } from '#test/support/workload'

const never = new AbortController().signal
const NODE = 'node_a'

let local: FakeEngine
let away: FakeEngine
let engine: Engine
let members: EngineMember[]
let is_up: boolean
let now: number
let changed: () => void
const prepared: string[] = []
const placed = new Map<string, string | null>()
/** Of which app a release was asked about. */
const seen_apps = new Map<string, string>()

beforeEach(() => {
  local = createFakeEngine()
  away = createFakeEngine()
  is_up = true
  now = 0
  changed = () => {}
  prepared.length = 0
  placed.clear()
  for (const one of [local, away]) one.addImage('app:1', { exposed_ports: [] })
  members = [{ id: NODE, engine: away, isUp: () => is_up }]
  const placing: Placing = {
    members: () => members,
    onChange(tell) {
      changed = tell
      return () => {}
    },
    async prepare(member, spec) {
      prepared.push(member.id)
      await member.engine.ensureNetwork(spec.network, {})
      return spec
    },
    here: (spec) => spec,
    nodeOf: (release_id, app_id) => {
      seen_apps.set(release_id, app_id)
      return placed.get(release_id)
    },
    removeShared: async () => {},
    close: async () => {},
  }
  engine = createClusterEngine(local, placing, () => now)
})
afterEach(async () => {
  await engine.close()
  await away.close()
})

const silence = () => {
  is_up = false
  away.setUnavailable(true)
}
const workload = (node: string, release_id: string) =>
  testWorkload({ image: 'app:1', network: 'ptr-one', release_id, placement: { node } })
async function place(node: string, release_id: string) {
  await engine.ensureNetwork('ptr-one', {})
  return (await engine.ensureRelease(workload(node, release_id), never))[0]!
}
const states = async () =>
  Object.fromEntries((await engine.instances({})).map(({ release_id, state }) => [release_id, state]))

describe('the engines of all servers', () => {
  test('run each workload where its placement says, and list them together', async () => {
    const [here, there] = [await place('local', 'rel_here'), await place(NODE, 'rel_there')]
    expect([here.node, there.node]).toEqual([undefined, NODE])
    expect(prepared).toEqual([NODE])
    expect((await local.instances({})).map(({ id }) => id)).toEqual([here.id])
    expect((await away.instances({})).map(({ id }) => id)).toEqual([there.id])
    const listed = await engine.instances({})
    expect(listed.map(({ id, node }) => [id, node])).toEqual([
      [here.id, undefined],
      [there.id, NODE],
    ])
    expect((await engine.runningInstances()).map(({ id }) => id).sort()).toEqual([here.id, there.id].sort())
  })
  test('say of what is on another server that this one does not answer, and not how it is reached', async () => {
    const { id } = await place(NODE, 'rel_there')
    silence()
    const told = {
      code: 'unavailable',
      is_elsewhere: true,
      message: 'The server that this runs on does not answer.',
    }
    const once = { ...workload(NODE, 'rel_there'), purpose: 'exec', command: ['true'], timeout_ms: 1000 }
    const lines = async () => {
      for await (const _line of engine.logs(id, { tail: 1 })) break
    }
    for (const asked of [
      () => engine.runOnce({ ...once, onLog: () => {} }, never),
      () => engine.exec(id, { argv: ['true'], timeout_ms: 1000 } as never, never),
      () => place(NODE, 'rel_new'),
      lines,
    ])
      await expect(asked()).rejects.toMatchObject(told)
  })
  test('refuse a server that is none of theirs', async () => {
    await expect(place('node_b', 'rel_lost')).rejects.toMatchObject({ code: 'unavailable' })
  })
  test('answer for an instance wherever it is, also after this process began anew', async () => {
    const there = await place(NODE, 'rel_there')
    away.print(there.id, 'said there')
    const fresh = createClusterEngine(local, {
      members: () => members,
      onChange: () => () => {},
      prepare: async (_member, spec) => spec,
      here: (spec) => spec,
      nodeOf: () => undefined,
      removeShared: async () => {},
      close: async () => {},
    })
    const lines: string[] = []
    for await (const line of fresh.logs(there.id, {})) lines.push(line.text)
    expect(lines).toContain('said there')
    expect(await fresh.stats(there.id)).toMatchObject({ memory_bytes: expect.any(Number) })
    const { stdin, stdout, done } = await fresh.exec(there.id, { command: ['true'] }, never)
    stdin.end()
    await text(stdout as AsyncIterable<Uint8Array>)
    expect((await done).exit_code).toBe(0)
  })
  test('end a release wherever it is', async () => {
    await place('local', 'rel_here')
    await place(NODE, 'rel_there')
    await engine.removeRelease('rel_there', 0)
    expect(await states()).toEqual({ rel_here: 'running' })
    await engine.removeRelease('rel_here', 0)
    expect(await states()).toEqual({})
  })
  test('tell of what happens on each of them in one stream, also of one that comes later', async () => {
    const late = members
    members = []
    const ending = new AbortController()
    const seen: string[] = []
    const reading = (async () => {
      for await (const { kind, release_id } of engine.events(ending.signal))
        seen.push(`${kind} ${release_id}`)
    })()
    await place('local', 'rel_here')
    await poll(() => seen.includes('start rel_here'))
    members = late
    changed()
    await poll(async () => {
      await place(NODE, 'rel_there')
      await engine.removeRelease('rel_there', 0)
      return seen.includes('start rel_there')
    })
    ending.abort()
    await reading
  })
})

describe('a server that does not answer', () => {
  test('is what it was for a moment, and then nobody is served by it', async () => {
    await place('local', 'rel_here')
    await place(NODE, 'rel_there')
    await engine.instances({})
    silence()
    expect(await states()).toEqual({ rel_here: 'running', rel_there: 'running' })
    now += 10_000
    expect(await states()).toEqual({ rel_here: 'running', rel_there: 'exited' })
    const [gone] = await engine.instances({ release_id: 'rel_there' })
    expect(gone).toMatchObject({ node: NODE })
    expect(gone).not.toHaveProperty('address')
    expect((await engine.runningInstances()).map(({ owner }) => owner)).toHaveLength(1)
  })
  test('keeps nobody from work on others', async () => {
    const there = await place(NODE, 'rel_there')
    silence()
    await place('local', 'rel_here')
    await engine.superviseRelease('rel_here', true)
    await engine.removeImage('app:1')
    expect(await engine.stats(there.id)).toBeUndefined()
    expect(await engine.layerBytes(there.id)).toBeUndefined()
    await engine.removeRelease('rel_here', 0)
    await expect(place(NODE, 'rel_more')).rejects.toMatchObject({ code: 'unavailable' })
  })
  test('is asked again after a while, and shows what it has', async () => {
    await place(NODE, 'rel_there')
    await engine.instances({})
    silence()
    now += 20_000
    expect(await states()).toEqual({ rel_there: 'exited' })
    is_up = true
    away.setUnavailable(false)
    now += 5_000
    expect(await states()).toEqual({ rel_there: 'running' })
  })
  test('shows no more what was removed meanwhile, until it is back and has it still', async () => {
    await place(NODE, 'rel_there')
    await engine.instances({})
    silence()
    now += 20_000
    await engine.removeRelease('rel_there', 0)
    expect(await states()).toEqual({})
    is_up = true
    away.setUnavailable(false)
    now += 5_000
    expect(await states()).toEqual({ rel_there: 'running' })
  })
})

describe('a server whose engine fails', () => {
  test('hides nothing of what there is on others, and is what it was', async () => {
    const there = await place(NODE, 'rel_there')
    const here = await place('local', 'rel_here')
    const ids = (found: readonly { id: string }[]) => found.map(({ id }) => id)
    await engine.instances({})
    away.failNext('instances')
    expect(ids(await engine.instances({}))).toEqual([here.id, there.id])
    away.failNext('runningInstances')
    expect(ids(await engine.runningInstances())).toEqual([here.id, there.id])
  })
  test('is no concern of what it has nothing of', async () => {
    await place('local', 'rel_here')
    await place(NODE, 'rel_there')
    for (const method of ['superviseRelease', 'pauseRelease', 'removeRelease'] as const) {
      away.failNext(method)
      await engine[method]('rel_here', false as never)
      away.failNext(method)
      await expect(engine[method]('rel_there', false as never)).rejects.toMatchObject({ code: 'failed' })
    }
  })
})

describe('a server that somebody took over', () => {
  const said = async () => (await engine.instances({})).map(({ release_id, node }) => [release_id, node])
  test('runs nothing of what was placed elsewhere, whatever it says', async () => {
    members.push({ id: 'node_b', engine: createFakeEngine(), isUp: () => true })
    placed
      .set('rel_here', null)
      .set('rel_there', NODE)
      .set('rel_other', 'node_b')
      .set('rel_left', 'node_gone')
    await place('local', 'rel_here')
    await away.ensureNetwork('ptr-one', {})
    for (const release_id of ['rel_here', 'rel_there', 'rel_other', 'rel_left', 'rel_forgotten'])
      await away.ensureRelease(workload('local', release_id), never)
    expect(await said()).toEqual([
      ['rel_here', undefined],
      ...['rel_there', 'rel_left', 'rel_forgotten'].map((release_id) => [release_id, NODE]),
    ])
  })
  test('has no database', async () => {
    await away.ensureNetwork('ptr-one', {})
    const owner = { kind: 'database', id: 'db_one' } as const
    await away.ensureRelease({ ...workload('local', 'vol_one'), owner }, never)
    expect(await said()).toEqual([])
  })
  test('is believed of a release by the app that it says, which may be another one', async () => {
    await place(NODE, 'rel_there')
    const [{ owner }] = (await engine.instances({})) as [Instance]
    expect(seen_apps.get('rel_there')).toBe(owner.id)
  })
  test('tells of nothing that happens to others, and of nothing that no engine says', async () => {
    const app = { kind: 'app', id: 'app_one' } as const
    const at = new Date(0).toISOString()
    const event: EngineEvent = { kind: 'die', instance_id: 'one', owner: app, release_id: 'rel_there', at }
    placed.set('rel_there', NODE).set('rel_here', null)
    const { owner: _owner, ...nobodys } = event
    away.events = async function* events() {
      yield { ...event, release_id: 'rel_here' }
      yield { ...event, owner: { kind: 'database', id: 'db_one' } }
      yield nobodys
      yield { ...event, at: 'never' }
      yield { ...event, exit_code: Number.NaN }
      yield { ...event, instance_id: 'x'.repeat(1000) }
      yield event
    }
    const ending = new AbortController()
    const seen: EngineEvent[] = []
    for await (const one of engine.events(ending.signal)) {
      seen.push(one)
      ending.abort()
    }
    expect(seen).toEqual([event])
  })
  test('has nobody wait for the end of what it tells', async () => {
    await place(NODE, 'rel_there')
    placed.set('rel_there', NODE)
    const { owner } = (await engine.instances({}))[0]!
    let told = 0
    away.events = async function* events() {
      for (;;) {
        told += 1
        yield {
          kind: 'die',
          instance_id: 'one',
          owner,
          release_id: 'rel_there',
          at: new Date(0).toISOString(),
        }
      }
    }
    const ending = new AbortController()
    let is_placed = false
    for await (const { release_id } of engine.events(ending.signal)) {
      if (release_id === 'rel_here') ending.abort()
      else if (!is_placed) {
        is_placed = true
        await place('local', 'rel_here')
      }
    }
    expect(told).toBeLessThan(1000)
  })
  test('has no instance of a shape that no engine gives one', async () => {
    const [one] = [await place(NODE, 'rel_there')]
    const strange: object[] = [
      { limits: { cpus: 1, memory_bytes: 0.5 } },
      { limits: { cpus: 'all', memory_bytes: 1 } },
      { restart_count: 1e300 },
      { started_at: 'yesterday' },
      { image: {} },
      { index: Number.NaN },
      { owner: { kind: 'app', id: 'x'.repeat(1000) } },
    ]
    away.instances = async () => [one, ...strange.map((part) => ({ ...one, ...part }) as Instance)]
    expect(await said()).toEqual([['rel_there', NODE]])
    away.stats = async () => ({ ...(await createFakeEngine().stats(one.id)), cpu_cores: 1e300 }) as never
    expect(await engine.stats(one.id)).toBeUndefined()
  })
  test('measures nothing for others: whose an instance is was said with its release', async () => {
    const one = await place(NODE, 'rel_there')
    await engine.instances({})
    away.runningInstances = async () =>
      [one.id, 'forged'].map((id) => ({ id, owner: { kind: 'app', id: 'app_other' } as const }))
    expect(await engine.runningInstances()).toEqual([{ id: one.id, owner: one.owner }])
  })
})
