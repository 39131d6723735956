import { beforeEach, expect, it } from 'vitest'
import type { Actor } from '#server/kernel/access'
import { createLog } from '#server/kernel/log'
import { createFrontDoor, REACHED_KEY } from '#server/ingress/front-door'

const NAME = 'dash.example.com'
const ADMIN = { role: 'admin' } as Actor
const NARROWED = { role: 'admin', only_projects: new Set(['prj_1']) } as unknown as Actor
const others: [string, Actor][] = [
  ['a member', { role: 'member' } as Actor],
  ['a key of an administrator for one project', NARROWED],
]

let kept: Map<string, string>
let settings: { name: string | null }
let moves: boolean[]
beforeEach(() => {
  kept = new Map()
  settings = { name: NAME }
  moves = []
})
/** The part of the product that decides; a new one reads what an earlier one kept. */
function open(host_is_chosen = false) {
  const door = {
    is_narrow: false,
    async set(narrow: boolean) {
      door.is_narrow = narrow
      moves.push(narrow)
    },
  }
  return createFrontDoor({
    door,
    config: { host_is_chosen, port: 9000 },
    log: createLog('text', 'error', () => undefined),
    meta: { get: (key) => kept.get(key), set: (key, value) => void kept.set(key, value) },
    hostname: () => settings.name,
  })
}

it('closes once an administrator has come in under the dashboard domain, and not before', () => {
  const front_door = open()
  front_door.applySoon()
  front_door.cameIn('other.example.com', ADMIN)
  expect(moves).toEqual([])
  front_door.cameIn(NAME, ADMIN)
  front_door.cameIn(NAME, ADMIN)
  expect(moves).toEqual([true])
})
it.each(others)('does not close because %s came in', (_who, actor) => {
  open().cameIn(NAME, actor)
  expect(moves).toEqual([])
})
it('is closed after a restart, too', () => {
  open().cameIn(NAME, ADMIN)
  moves = []
  open().applySoon()
  expect(moves).toEqual([true])
})
it('opens at once when the domain becomes another or none, and one that is set again has to be seen again', () => {
  const front_door = open()
  front_door.cameIn(NAME, ADMIN)
  settings.name = 'wrong.example.com'
  front_door.applySoon()
  settings.name = NAME
  front_door.applySoon()
  expect(moves).toEqual([true, false])
  front_door.cameIn(NAME, ADMIN)
  settings.name = null
  front_door.applySoon()
  expect([moves, kept.get(REACHED_KEY)]).toEqual([[true, false, true, false], ''])
})
it('leaves an address alone that somebody chose with HOST', () => {
  const front_door = open(true)
  front_door.cameIn(NAME, ADMIN)
  front_door.applySoon()
  expect(moves).toEqual([])
})
