import { PassThrough } from 'node:stream'
import type { ClientChannel } from 'ssh2'
import { expect, test } from 'vitest'
import { inspectServer } from '#server/platform/cluster/inspect'
import { installEngineOn } from '#server/platform/cluster/install-engine'
import { createRemoteRun } from '#server/platform/cluster/remote-run'
import type { Session } from '#server/platform/cluster/session'
import { openedWithin, type Ssh } from '#server/platform/cluster/ssh'

const never = new Promise<never>(() => {})

/** A channel of a server that takes everything and says nothing. */
const silent = () =>
  Object.assign(new PassThrough({ emitClose: false }), {
    stderr: new PassThrough(),
    signal() {},
    close() {},
  }) as unknown as ClientChannel

/** A channel that is closed without a word about how the command ended. */
function ended(): ClientChannel {
  const channel = silent()
  queueMicrotask(() => setImmediate(() => channel.emit('close')))
  return channel
}

test('a command ends in time on a server that never says that it ended', async () => {
  const ssh: Pick<Ssh, 'exec' | 'closed'> = { exec: async () => silent(), closed: never }
  const result = await createRemoteRun(ssh as Ssh, true)(['id'], { cwd: '/', timeout_ms: 1 })
  expect(result).toMatchObject({ timed_out: true, exit_code: 137 })
})
test('a connection that breaks off says nothing about the server: it is one that does not answer', async () => {
  const away = { code: 'unreachable', message: 'The SSH connection to 10.0.0.2 broke off.' }
  const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET' })
  const ends: Pick<Ssh, 'exec' | 'closed'>[] = [
    { exec: () => Promise.reject(reset), closed: never },
    { exec: async () => silent(), closed: Promise.resolve() },
    { exec: async () => ended(), closed: never },
  ]
  for (const end of ends) {
    const run = createRemoteRun({ ...end, address: '10.0.0.2' } as Ssh, true)
    await expect(run(['id'], { cwd: '/' })).rejects.toMatchObject(away)
    await expect(inspectServer({ run } as Session)).rejects.toMatchObject(away)
    const signal = AbortSignal.timeout(60_000)
    const openEngine = () => Promise.reject(reset)
    await expect(installEngineOn({ run, openEngine }, signal)).rejects.toMatchObject(away)
  }
})
test('a channel that is never opened holds nobody, and one that is opened too late is closed', async () => {
  await expect(openedWithin(never, 1)).rejects.toMatchObject({ code: 'ECONNRESET' })
  const opening = Promise.withResolvers<PassThrough>()
  await expect(openedWithin(opening.promise, 1)).rejects.toThrow('opens no channel')
  const late = new PassThrough()
  opening.resolve(late)
  await expect.poll(() => late.destroyed).toBe(true)
})
