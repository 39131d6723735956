import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type GitServer, startGitServer } from '#test/support/git-server'
import { ADMIN, docker, eventually, nodeApp, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { listen, type Listener } from '#test/support/socket'
import { deployed } from './support/deployed.ts'

let forge: GitServer
let portreeve: Portreeve
let app_id: string
const listeners: Listener[] = []

beforeAll(async () => {
  forge = await startGitServer()
  portreeve = await startPortreeve({ env: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: forge.host } })
  const repository = forge.repository('shell')
  repository.commit(nodeApp('one'))
  app_id = (await deployed(portreeve, { name: 'shell', git_url: repository.url })).id
})
afterAll(async () => {
  for (const { socket } of listeners) socket.close()
  await portreeve?.dispose()
  await forge?.close()
})

/** Opens a terminal and answers how to type into it and wait for what it shows. */
async function open(channel: string, token = portreeve.token()) {
  const listener = await listen(portreeve.url, { authorization: `Bearer ${token}` })
  listeners.push(listener)
  listener.say({ type: 'subscribe', channel, data: { cols: 132, rows: 43 } })
  const { data: started } = await listener.until(({ type }) => type === 'started' || type === 'error')
  expect(started).toMatchObject({ instance_id: expect.any(String) })
  const shown = () =>
    listener.heard
      .filter(({ type }) => type === 'output')
      .map(({ data }) => data.text)
      .join('')
  return {
    ...listener,
    started,
    type: (text: string) => listener.say({ type: 'input', channel, data: { text } }),
    resize: (cols: number, rows: number) => listener.say({ type: 'resize', channel, data: { cols, rows } }),
    shows: (text: string) =>
      eventually(text, async () => (shown().includes(text) ? true : undefined), 20_000),
    ended: async () => (await listener.until(({ type }) => type === 'exit')).data,
  }
}
const processes = (container: string) => docker('top', container, '-eo', 'pid,args')
const trail = async () =>
  (await portreeve.call('GET', '/api/audit-logs?action=terminal.&per_page=50')).body.data as {
    action: string
    actor: { email: string }
    after: Record<string, unknown>
  }[]

describe('a terminal in a running app', () => {
  it('is a shell in the container: size, new size, interrupt and exit code reach where they belong', async () => {
    const terminal = await open(`apps/${app_id}/terminal`)
    terminal.type('stty size; echo app-$PORTREEVE_APP\n')
    await terminal.shows('43 132')
    await terminal.shows('app-shell')
    terminal.resize(100, 30)
    terminal.type('until [ "$(stty size)" = "30 100" ]; do sleep 0.1; done; echo re""sized\n')
    await terminal.shows('resized')
    terminal.type('sleep 300\n')
    await eventually('sleep', async () =>
      processes(terminal.started.instance_id).includes('sleep 300') ? true : undefined,
    )
    terminal.type('\u0003')
    terminal.type('exit 5\n')
    expect(await terminal.ended()).toEqual({ reason: 'exited', exit_code: 5 })
    const [end, start] = await trail()
    expect([start?.action, end?.action]).toEqual(['terminal.start', 'terminal.end'])
    expect(end).toMatchObject({
      actor: { email: expect.stringContaining('@') },
      after: { session_id: terminal.started.session_id, reason: 'exited', exit_code: 5 },
    })
  })

  it('prints megabytes completely to a client that takes its time, and a megabyte can be pasted', async () => {
    const terminal = await open(`apps/${app_id}/terminal`)
    terminal.type('seq 1 200000 | tail -c 900000; echo; echo en""d-of-it\n')
    await terminal.shows('end-of-it')
    terminal.type(
      'stty -echo -icanon; echo ra""w; head -c 1000000 | tr -d z | wc -c; stty sane; echo rea""dy\n',
    )
    await terminal.shows('raw')
    const taken = () => terminal.heard.filter(({ type }) => type === 'input_taken').at(-1)?.data.chars ?? 0
    const before = taken()
    for (let sent = 0; sent < 1_000_000; sent += 50_000) {
      await eventually('room for input', async () => (before + sent - taken() <= 100_000 ? true : undefined))
      terminal.type('z'.repeat(50_000))
    }
    await terminal.shows('ready')
    expect(terminal.heard.filter(({ type }) => type === 'error')).toEqual([])
    terminal.type('exit\n')
    await terminal.ended()
  })

  it('ends with the session of who opened it: nothing of it runs on', async () => {
    const { body } = await portreeve.call('POST', '/api/auth/login', {
      email: ADMIN.email,
      password: ADMIN.password,
    })
    const token: string = body.data.token
    const terminal = await open(`apps/${app_id}/terminal`, token)
    terminal.type("(trap '' HUP TERM; sleep 411) & sleep 412\n")
    await eventually('sleepers', async () =>
      /sleep 411[^]*sleep 412/.test(processes(terminal.started.instance_id)) ? true : undefined,
    )
    await fetch(`${portreeve.url}/api/auth/logout`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
    })
    expect(await terminal.closed).toBe(4401)
    await eventually('their end', async () =>
      /sleep 41/.test(processes(terminal.started.instance_id)) ? undefined : true,
    )
    expect((await trail())[0]).toMatchObject({ after: { reason: 'revoked' } })
  })

  it('that kill -9 of Portreeve cut off is ended and recorded at the next start', async () => {
    const terminal = await open(`apps/${app_id}/terminal`)
    terminal.type('sleep 511\n')
    await eventually('sleep', async () =>
      processes(terminal.started.instance_id).includes('sleep 511') ? true : undefined,
    )
    await portreeve.kill()
    await portreeve.start()
    await eventually('its end', async () =>
      processes(terminal.started.instance_id).includes('sleep 511') ? undefined : true,
    )
    expect((await trail())[0]).toMatchObject({
      action: 'terminal.end',
      after: { session_id: terminal.started.session_id, reason: 'server_restarted' },
    })
  })

  it('ends with its container', async () => {
    const terminal = await open(`apps/${app_id}/terminal`)
    await portreeve.call('POST', `/api/apps/${app_id}/stop`)
    expect(await terminal.ended()).toMatchObject({ reason: 'instance_gone' })
  })
})

describe('a terminal in a database', () => {
  it('is a shell beside the server, with its own tools', async () => {
    const { body } = await portreeve.call('POST', '/api/databases', { name: 'cache', engine: 'redis' })
    await eventually(
      'the database',
      async () =>
        (await portreeve.call('GET', `/api/databases/${body.data.id}`)).body.data.status === 'running'
          ? true
          : undefined,
      60_000,
    )
    const terminal = await open(`databases/${body.data.id}/terminal`)
    terminal.type('redis-cli --version; exit\n')
    await terminal.shows('redis-cli ')
    expect(await terminal.ended()).toMatchObject({ reason: 'exited', exit_code: 0 })
  })
})
