import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limitConnections } from '#server/http/connection-limits'
import { poll } from '#test/support/poll'
import { speak } from '#test/support/socket'

let server: Server
let port: number
/** Requests that have begun, by their path; those of `/held/…` are answered by the test. */
let begun: string[]
let held: ServerResponse[]
let clients: Socket[]
beforeEach(async () => {
  ;[begun, held, clients] = [[], [], []]
  limitConnections()
  server = createServer((req: IncomingMessage, res) => {
    begun.push(req.url!)
    if (req.url!.startsWith('/held')) held.push(res)
    else req.resume().once('end', () => res.end(`<${req.url}>`))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
})
afterEach(() => {
  for (const client of clients) client.destroy()
  server.close()
})
const get = (path: string, ...headers: string[]) =>
  `${[`GET ${path} HTTP/1.1`, 'Host: x', ...headers].join('\r\n')}\r\n\r\n`
function say(bytes: string): Socket {
  const client = connect(port, '127.0.0.1').on('error', () => undefined)
  clients.push(client)
  client.write(bytes)
  return client
}

describe('requests that come at once on one connection', () => {
  it('begin one after the other, when the one before was answered: others are served meanwhile', async () => {
    say(Array.from({ length: 50 }, (_, n) => get(`/held/${n}`)).join(''))
    await poll(() => held.length > 0)
    expect(await speak(port, get('/other', 'Connection: close'))).toContain('</other>')
    expect(begun).toEqual(['/held/0', '/other'])
    held[0]!.end()
    await poll(() => held.length > 1)
    expect(begun).toEqual(['/held/0', '/other', '/held/1'])
  })
  it('are answered in their order, each with its own body', async () => {
    const post = 'POST /second HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc'
    const text = await speak(port, `${get('/first')}${post}${get('/third', 'Connection: close')}`)
    expect(text.match(/<[^>]+>/g)).toEqual(['</first>', '</second>', '</third>'])
  })
  it('end the connection where they are too many, and none of them is begun any more', async () => {
    const client = say(get('/held/first') + get('/more').repeat(1000))
    await new Promise((resolve) => client.once('close', resolve))
    expect(begun).toEqual(['/held/first'])
  })
  it('are forgotten with their connection', async () => {
    say(get('/held/first') + get('/second'))
    await poll(() => held.length > 0)
    clients[0]!.destroy()
    await once(held[0]!, 'close')
    expect(await speak(port, get('/other', 'Connection: close'))).toContain('</other>')
    expect(begun).toEqual(['/held/first', '/other'])
  })
})
