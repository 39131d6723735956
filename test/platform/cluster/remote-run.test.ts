import { PassThrough } from 'node:stream'
import type { ClientChannel } from 'ssh2'
import { expect, test } from 'vitest'
import { createRemoteRun } from '#server/platform/cluster/remote-run'
import { openedWithin, type Ssh } from '#server/platform/cluster/ssh'

const never = new Promise<never>(() => {})

/** A channel of a server that takes everything and says nothing. */
const silent = () =>
  Object.assign(new PassThrough({ emitClose: false }), {
    stderr: new PassThrough(),
    signal() {},
    close() {},
  }) as unknown as ClientChannel

test('a command ends in time on a server that never says that it ended', async () => {
  const ssh: Pick<Ssh, 'exec' | 'closed'> = { exec: async () => silent(), closed: never }
  const result = await createRemoteRun(ssh as Ssh, true)(['id'], { cwd: '/', timeout_ms: 1 })
  expect(result).toMatchObject({ timed_out: true, exit_code: 137 })
})
test('a channel that is never opened holds nobody, and one that is opened too late is closed', async () => {
  await expect(openedWithin(never, 1)).rejects.toMatchObject({ code: 'ECONNRESET' })
  const opening = Promise.withResolvers<PassThrough>()
  await expect(openedWithin(opening.promise, 1)).rejects.toThrow('opens no channel')
  const late = new PassThrough()
  opening.resolve(late)
  await expect.poll(() => late.destroyed).toBe(true)
})
