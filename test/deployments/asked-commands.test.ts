import { expect, it } from 'vitest'
import { createAskedCommands } from '#server/deployments/commands'

it('commands of few users in many projects leave places for whoever runs none', async () => {
  const asked = createAskedCommands()
  const refused: string[] = []
  let begun = 0
  const never = () => {
    begun += 1
    return new Promise<void>(() => {})
  }
  const run = (user: string, project: string) =>
    void asked.run(user, project, never).catch(() => refused.push(user))
  for (let n = 0; n < 4; n += 1)
    for (let user = 0; user < 20; user += 1) run(`user ${user}`, `project ${(n * 20 + user) % 40}`)
  await new Promise(setImmediate)
  expect(begun).toBe(48)
  run('somebody', 'another project')
  run('somebody', 'another project')
  await new Promise(setImmediate)
  expect([begun, refused.at(-1)]).toEqual([49, 'somebody'])
})
