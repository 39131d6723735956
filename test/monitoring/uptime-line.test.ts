import { beforeEach, describe, expect, it } from 'vitest'
import { createLine } from '#server/monitoring/uptime/line'

let now_ms: number
let line: ReturnType<typeof createLine>
beforeEach(() => {
  now_ms = 0
  line = createLine({ monotonic_ms: () => now_ms })
})
/** So many checks of a project that are due. */
const due = (project_id: string, count: number) =>
  Array.from({ length: count }, (_, at) => ({ id: `${project_id} ${at}`, project_id }))
const takeAll = () => {
  const taken: NonNullable<ReturnType<typeof line.take>>[] = []
  for (let one = line.take(); one; one = line.take()) taken.push(one)
  return taken
}

describe('checks that are due', () => {
  it('begin 50 a second at most, whoever has however many that end at once', () => {
    const projects = Array.from({ length: 100 }, (_, at) => `prj_${at}`)
    const second = () => {
      line.fill(projects.flatMap((id) => due(id, 30)))
      let begun = 0
      for (let taken = takeAll(); taken.length > 0; taken = takeAll()) {
        begun += taken.length
        for (const { leave } of taken) leave()
      }
      return begun
    }
    expect(second()).toBe(100)
    expect(line.isPaced()).toBe(true)
    now_ms += 1000
    expect(second()).toBe(50)
  })
  it('of a project that has many are begun after those of one that has few', () => {
    line.fill(due('many', 30))
    for (let round = 0; round < 10; round += 1) for (const { leave } of takeAll()) leave()
    line.fill([...due('many', 30), ...due('few', 1)])
    expect(line.take()?.id).toBe('few 0')
  })
  it('are read again once all that were read have begun, where there may be more', () => {
    line.fill(due('few', 1))
    for (const { leave } of takeAll()) leave()
    expect(line.isToBeRead()).toBe(false)
    line.fill(due('many', 30))
    expect(line.isToBeRead()).toBe(false)
    for (let round = 0; round < 10; round += 1) for (const { leave } of takeAll()) leave()
    expect(line.isToBeRead()).toBe(true)
  })
  it('are read again also while those of another project hang', () => {
    line.fill([...due('hangs', 30), ...due('many', 30)])
    for (let round = 0; round < 12; round += 1)
      for (const { id, leave } of takeAll()) if (id.startsWith('many')) leave()
    expect(line.isToBeRead()).toBe(true)
  })
})
