import { setImmediate as round } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createEntrance, createRequestTurns } from '#server/http/turns'
import { ApiError } from '#server/kernel/errors'
import { poll } from '#test/support/poll'
import { by, startTinyApi, type TinyApi } from './tiny-api.ts'

/** Asks for turns and notes, round by round, whose came. */
function createRounds(most_waiting?: number) {
  const turn = createRequestTurns(most_waiting)
  const begun: string[] = []
  const ask = (owner: string, name = owner, is_first = false) => {
    const waiting = turn(owner, is_first)
    if (waiting) void waiting.then(() => begun.push(name))
    else begun.push(name)
  }
  return { ask, begun }
}

it('one request of a user begins in each round of the event loop, and those of others in the same rounds', async () => {
  const { ask, begun } = createRounds()
  for (let n = 0; n < 4; n += 1) ask('many')
  ask('other')
  expect(begun).toEqual(['many', 'other'])
  await round()
  expect(begun).toEqual(['many', 'other', 'many'])
  ask('other')
  ask('third')
  await round()
  await round()
  expect(begun.slice(3).toSorted()).toEqual(['many', 'many', 'other', 'third'])
})
it('more than may wait are refused, but not what a user has to do with their own account', async () => {
  const { ask, begun } = createRounds(2)
  for (const name of ['first', 'second', 'third']) ask('many', name)
  expect(() => ask('many', 'fourth')).toThrow(expect.objectContaining({ code: 'RATE_LIMITED' }))
  ask('many', 'end the key', true)
  await round()
  expect(begun).toEqual(['first', 'end the key'])
  for (const _ of [1, 2, 3]) await round()
  expect(begun).toEqual(['first', 'end the key', 'second', 'third'])
})
it('what goes first is begun in the order in which it came as well, and has the same bound', async () => {
  const { ask, begun } = createRounds(3)
  ask('many', 'begins')
  for (const name of ['one', 'two', 'three']) ask('many', name, true)
  expect(() => ask('many', 'four', true)).toThrow(expect.objectContaining({ code: 'RATE_LIMITED' }))
  for (const _ of [1, 2, 3]) await round()
  expect(begun).toEqual(['begins', 'one', 'two', 'three'])
})
it('of many requests that arrive at once so many are let in in each round, addresses in turn', async () => {
  const enter = createEntrance(2)
  const entered: string[] = []
  const arrive = (address: string, name: string) => {
    const held = enter(address)
    if (held) void held.then(() => entered.push(name))
    else entered.push(name)
  }
  for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) arrive('a', name)
  arrive('b', 'b1')
  expect(entered).toEqual(['a1', 'a2'])
  await round()
  await round()
  expect(entered.slice(2, 4).sort()).toEqual(['a3', 'b1'])
  for (let n = 0; n < 4; n += 1) await round()
  expect(entered.slice(4)).toEqual(['a4', 'a5'])
  arrive('a', 'again')
  expect(entered.at(-1)).toBe('again')
})

describe('a request is worked on when its turn has come, for whom it then is', () => {
  /** A request that waits for its turn, while something happens; asked for are those who were asked who they are. */
  async function whileWaiting(happens: (api: TinyApi) => void) {
    const api = await startTinyApi()
    let come: (() => void) | undefined
    let asked = 0
    const { authenticate } = api.services.http
    api.services.http.authenticate = (...about) => {
      asked += 1
      return authenticate(...about)
    }
    api.services.http.turn = (owner) => {
      expect(owner).toBe('usr_viewer')
      return new Promise((resolve) => (come = resolve))
    }
    const answer = api.send('POST', '/api/slow', { headers: by('viewer') })
    await poll(() => come !== undefined)
    expect(api.services.handled).toEqual([])
    happens(api)
    come!()
    api.services.gate.open()
    const { status } = await answer
    await api.close()
    return { status, asked, handled: api.services.handled.length }
  }
  const revoke = (api: TinyApi) => {
    api.services.http.authenticate = () => {
      throw new ApiError('UNAUTHORIZED', 'The key has ended.')
    }
  }
  const write = ({ kernel }: TinyApi) =>
    kernel.db.raw.exec('CREATE TABLE some (n); INSERT INTO some VALUES (1)')

  it('a key that ended meanwhile is 401', async () => {
    const seen = await whileWaiting((api) => {
      write(api)
      revoke(api)
    })
    expect(seen).toEqual({ status: 401, asked: 1, handled: 0 })
  })
  it('who it is is asked for again after anything was written, and not while nothing was', async () => {
    expect((await whileWaiting(write)).asked).toBe(2)
    expect((await whileWaiting(() => undefined)).asked).toBe(1)
  })
})
