import { afterEach, describe, expect, it } from 'vitest'
import { createPreviewWorld, FORK_URL, type PreviewWorld } from './harness.ts'

let world: PreviewWorld
afterEach(() => world.close())

const calls = (method: string) => world.api.fakes.engine.calls.filter((call) => call.method === method).length
const offer = async (action: 'opened' | 'synchronize' | 'closed', branch: string) => {
  const sha = world.commit(`a stranger's ${action}`, branch, FORK_URL)
  return (await world.pullRequest(action, { sha, branch, fork: FORK_URL })).body.data
}

/** Somebody of the team shows a branch under a number that a pull request of a stranger gets later. */
async function teamPreview(forks: string): Promise<void> {
  world = await createPreviewWorld({ settings: { forks } })
  world.commit('for the customer', 'staging')
  const made = await world.api.as('developer').post(world.path, { number: 12, branch: 'staging' })
  expect(made.status).toBe(201)
  await world.idle()
}

describe('a pull request of a fork that has the number of a preview of the team', () => {
  it.each(['approval', 'without_secrets'])('neither runs there nor changes it: %s', async (forks) => {
    await teamPreview(forks)
    const before = await world.preview()
    const builds = calls('buildImage')
    for (const action of ['opened', 'synchronize'] as const)
      expect(await offer(action, 'theirs')).toMatchObject({
        outcome: 'ignored',
        reason: expect.stringContaining('shows staging of the repository itself'),
      })
    await world.idle()
    expect(await world.preview()).toEqual(before)
    expect(calls('buildImage')).toBe(builds)
  })
  it('does not take it along when it is closed or aimed at another branch', async () => {
    await teamPreview('approval')
    const before = await world.preview()
    expect(await offer('closed', 'theirs')).toMatchObject({ outcome: 'ignored' })
    const sha = world.commit('again', 'theirs', FORK_URL)
    await world.pullRequest('edited', { sha, fork: FORK_URL, base: 'other', changes: { base: {} } })
    await world.idle()
    expect(await world.preview()).toEqual(before)
  })
  it('has a preview of its own once that one is removed', async () => {
    await teamPreview('approval')
    await world.api.as('developer').delete(`${world.path}/12`)
    await world.idle()
    await world.isGone()
    expect(await offer('opened', 'theirs')).toMatchObject({ outcome: 'preview' })
    expect(await world.preview()).toMatchObject({ status: 'waiting', is_fork: true })
  })
  it('is none of the pull request of the repository itself, which brings it to its commits', async () => {
    await teamPreview('approval')
    const sha = world.commit('next', 'staging')
    await world.pullRequest('opened', { sha, branch: 'staging' })
    await world.idle()
    expect(await world.preview()).toMatchObject({ commit: sha, status: 'running' })
    await world.pullRequest('closed', { sha, branch: 'staging' })
    await world.idle()
    await world.isGone()
  })
})
