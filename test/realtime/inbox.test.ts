import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createInboxes } from '#server/realtime/inbox'
import { createTurns } from '#server/realtime/turns'

/** Inboxes on a clock that moves on by 2 ms for each message that is acted on. */
function bench() {
  let at = 0
  const deferred: (() => void)[] = []
  const turns = createTurns({ now: () => at, defer: (fn) => void deferred.push(fn) })
  const inboxOf = createInboxes(turns, () => at)
  const acted: string[] = []
  const open = (owner: string) =>
    inboxOf(owner, (message) => {
      at += 2
      acted.push(`${owner} ${(message as { channel: string }).channel}`)
    })
  const say = (inbox: ReturnType<typeof open>, ...channels: string[]) => {
    for (const channel of channels) inbox.take({ type: 'unsubscribe', channel })
  }
  return { open, say, acted, settle: () => deferred.shift()?.() }
}

it('messages are acted on as they come, and what is beyond some milliseconds waits, users in turn and in order', () => {
  const { open, say, acted, settle } = bench()
  const [greedy, modest] = [open('greedy'), open('modest')]
  say(greedy, '1', '2', '3', '4', '5', '6', '7')
  say(modest, '1', '2')
  expect(acted).toEqual(['greedy 1', 'greedy 2', 'greedy 3'])
  settle()
  expect(acted.slice(3)).toEqual(['greedy 4', 'modest 1', 'greedy 5'])
  for (let n = 0; n < 5; n += 1) settle()
  expect(acted.slice(6).sort()).toEqual(['greedy 6', 'greedy 7', 'modest 2'])
})

it('in the next round of the event loop there is time again, and what a connection that went had said is forgotten', async () => {
  const { open, say, acted, settle } = bench()
  const inbox = open('one')
  say(inbox, '1', '2', '3', '4')
  inbox.clear()
  settle()
  await setImmediate()
  say(inbox, '5')
  expect(acted).toEqual(['one 1', 'one 2', 'one 3', 'one 5'])
})
