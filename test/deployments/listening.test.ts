import { describe, expect, it } from 'vitest'
import { elsewhere, listeningOf, parseListening } from '#server/deployments/listening'
import type { Engine } from '#server/platform/engine/engine'

const HEAD =
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n'
const row = (address: string, port: number, state = '0A') =>
  `   0: ${address}:${port.toString(16).toUpperCase().padStart(4, '0')} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0\n`
const ANY = '00000000'
const ANY_6 = '0'.repeat(32)
const LOCAL = '0100007F'
const LOCAL_6 = '00000000000000000000000001000000'

describe('what an instance listens on', () => {
  it('is read from the tables of its kernel, without connections and the resolver of the engine', () => {
    const table =
      HEAD +
      row(ANY, 4567) +
      row(LOCAL, 9229) +
      row('0B00007F', 40_001) +
      row(ANY, 5, '01') +
      HEAD +
      row(ANY_6, 8080)
    expect(parseListening(table)).toEqual([
      { port: 4567, loopback: false },
      { port: 8080, loopback: false },
      { port: 9229, loopback: true },
    ])
  })

  it('is reachable when one of the two protocols is', () => {
    expect(parseListening(row(LOCAL, 80) + row(ANY_6, 80))).toEqual([{ port: 80, loopback: false }])
    expect(parseListening(row(ANY_6, 80) + row(LOCAL_6, 80))).toEqual([{ port: 80, loopback: false }])
    expect(parseListening(row(LOCAL_6, 80))).toEqual([{ port: 80, loopback: true }])
  })

  it('is not known of an image that cannot be asked, and that is no fault', async () => {
    const engine = { exec: () => Promise.reject(new Error('no such program')) } as unknown as Engine
    expect(await listeningOf(engine, { id: 'x' }, [])).toEqual([])
  })

  it('is not asked further of an image whose program prints without end', async () => {
    let closed = false
    async function* endless() {
      try {
        for (;;) yield Buffer.alloc(64 * 1024, 'x')
      } finally {
        closed = true
      }
    }
    const running = { stdin: { end() {} }, stdout: endless(), done: new Promise(() => {}) }
    const engine = { exec: async () => running } as unknown as Engine
    expect(await listeningOf(engine, { id: 'x' }, [])).toEqual([])
    expect(closed).toBe(true)
  })
})

describe('an app that is not ready is told', () => {
  it('the port that it listens on in place of the one that is probed', () => {
    expect(elsewhere([{ port: 4567, loopback: false }], 3000)).toMatchObject({
      last: 'it listens on 4567, not on 3000',
      hint: expect.stringContaining('Set port to 4567'),
    })
  })
  it('that it listens where only it itself can connect', () => {
    expect(elsewhere([{ port: 3000, loopback: true }], 3000)).toMatchObject({
      last: 'it listens on 127.0.0.1:3000 only, where nobody else reaches it',
      hint: expect.stringContaining('0.0.0.0'),
    })
    expect(elsewhere([{ port: 5173, loopback: true }], 3000)?.last).toContain('127.0.0.1:5173')
  })
  it('nothing where it listens on nothing', () => {
    expect(elsewhere([], 3000)).toBeUndefined()
    expect(elsewhere([{ port: 3000, loopback: false }], 3000)).toBeUndefined()
  })
})
