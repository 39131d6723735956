import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, TLSSocket, createSecureContext } from 'node:tls'
import { createSelfSigned } from '#server/platform/ingress/self-signed'

/** How the server behaves; may be changed between connections. */
export interface SmtpBehaviour {
  security: 'tls' | 'starttls' | 'none'
  /** Demands a login with this name and password. */
  login?: { username: string; password: string }
  /** Answers this command with this line, e.g. `{ RCPT: '550 5.1.1 No such user' }`. */
  answers?: Record<string, string>
  /** Says nothing at all. */
  silent?: boolean
}
export interface TestSmtpServer {
  port: number
  /** Authority of its certificate for `localhost`, in PEM. */
  ca: string
  behaviour: SmtpBehaviour
  /** Messages that were taken: envelope, the text as sent, and whether it came over TLS. */
  messages: {
    from: string
    to: string[]
    text: string
    tls: boolean
    username: string | undefined
  }[]
  /** Connections that were accepted. */
  connections: number
  close(): Promise<void>
}

/**
 * A mail server on 127.0.0.1 that speaks enough of RFC 5321 for a client that is to be tested: STARTTLS, TLS,
 * AUTH, refusals.
 * @param pem its certificate and key.
 */
export async function startSmtpServer(
  behaviour: SmtpBehaviour,
  pem = createSelfSigned(['localhost'], new Date(), 30),
): Promise<TestSmtpServer> {
  const at = pem.indexOf('-----BEGIN PRIVATE')
  const [cert, key] = [pem.slice(0, at), pem.slice(at)]
  const sockets = new Set<Socket>()
  const result: TestSmtpServer = {
    port: 0,
    ca: cert,
    behaviour,
    messages: [],
    connections: 0,
    close: () => Promise.resolve(),
  }

  function serve(socket: Socket, tls: boolean, greets: boolean): void {
    const state = {
      from: '',
      to: [] as string[],
      username: undefined as string | undefined,
      login: '',
    }
    let pending = ''
    let body: string[] | undefined
    const say = (...lines: string[]) => socket.write(lines.map((line) => `${line}\r\n`).join(''))
    const authenticate = (encoded: string) => {
      const [, username, password] = Buffer.from(encoded, 'base64').toString().split('\0')
      const { login } = result.behaviour
      if (!login || username !== login.username || password !== login.password)
        return say('535 5.7.8 Authentication credentials invalid')
      state.username = username
      say('235 2.7.0 Accepted')
    }
    const command = (line: string) => {
      const word = line.split(/[ :]/)[0]!.toUpperCase()
      const scripted = result.behaviour.answers?.[word]
      if (scripted) return say(scripted)
      switch (word) {
        case 'EHLO':
          return say(
            '250-test',
            ...(result.behaviour.security === 'starttls' && !tls ? ['250-STARTTLS'] : []),
            ...(result.behaviour.login ? ['250-AUTH PLAIN'] : []),
            '250 SIZE 1000000',
          )
        case 'STARTTLS': {
          if (result.behaviour.security !== 'starttls') return say('502 5.5.1 Not implemented')
          say('220 Ready')
          socket.removeAllListeners('data')
          return serve(
            new TLSSocket(socket, {
              isServer: true,
              secureContext: createSecureContext({ cert, key }),
            }),
            true,
            false,
          )
        }
        case 'AUTH':
          return authenticate(line.split(' ')[2] ?? '')
        case 'MAIL':
          return result.behaviour.login && !state.username
            ? say('530 5.7.0 Authentication required')
            : ((state.from = line), say('250 Ok'))
        case 'RCPT':
          return state.to.push(line), say('250 Ok')
        case 'DATA':
          return (body = []), say('354 Go on')
        case 'QUIT':
          return say('221 Bye'), socket.end()
        default:
          return say('250 Ok')
      }
    }
    const take = (line: string) => {
      if (!body) return void command(line)
      if (line !== '.') return void body.push(line.replace(/^\./, ''))
      result.messages.push({
        from: state.from,
        to: state.to,
        text: body.join('\n').replace(/=\n/g, '').replace(/=3D/g, '='),
        tls,
        username: state.username,
      })
      body = undefined
      say(result.behaviour.answers?.['.'] ?? '250 Taken')
    }
    socket.on('error', () => undefined)
    socket.on('data', (bytes: Buffer) => {
      const lines = (pending + bytes.toString('latin1')).split('\r\n')
      pending = lines.pop()!
      for (const line of lines) take(line)
    })
    if (greets && !result.behaviour.silent) say(result.behaviour.answers?.greeting ?? '220 test ESMTP')
  }

  const accept = (tls: boolean) => (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    result.connections += 1
    serve(socket, tls, true)
  }
  const server: Server =
    behaviour.security === 'tls' ? createTlsServer({ cert, key }, accept(true)) : createServer(accept(false))
  server.on('tlsClientError', () => undefined)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  result.port = (server.address() as { port: number }).port
  result.close = () =>
    new Promise((resolve) => {
      for (const socket of sockets) socket.destroy()
      server.close(() => resolve())
    })
  return result
}
