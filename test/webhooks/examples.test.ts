import { createHmac } from 'node:crypto'
import { createRequire } from 'node:module'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createPreviewWorld, type PreviewWorld } from '../previews/harness.ts'

// Real payloads that GitHub publishes. The package has no `main`, so its file is named.
const EXAMPLES = createRequire(import.meta.url)('@octokit/webhooks-examples/api.github.com/index.json') as {
  name: string
  examples: Record<string, unknown>[]
}[]
let world: PreviewWorld
beforeAll(async () => {
  world = await createPreviewWorld()
})
afterAll(() => world.close())

it('every published payload of GitHub is taken through the endpoint, or answered with a reason, never with a fault', async () => {
  const answers: string[] = []
  let sent = 0
  for (const { name, examples } of EXAMPLES)
    for (const payload of examples) {
      // Of a hook no more than 120 calls a minute are taken.
      if (sent++ % 100 === 0) world.api.fakes.clock.advance(60_000)
      const { status, body } = await world.tell(name, payload)
      const { outcome, reason } = body.data ?? {}
      const is_told = outcome === 'pong' || (outcome === 'ignored' && /^[A-Z].{10,}\.$/.test(reason))
      if (status !== 200 || !is_told) answers.push(`${name} ${status} ${JSON.stringify(body)}`)
    }
  expect(answers).toEqual([])
  expect(sent).toBeGreaterThan(200)
})

it('pull requests of the published payloads make previews of an app of their repository', async () => {
  const published = EXAMPLES.find(({ name }) => name === 'pull_request')!.examples
  const opened = published.find(({ action }) => action === 'opened') as {
    number: number
    pull_request: { head: { ref: string; sha: string }; base: { ref: string } }
    repository: { clone_url: string }
  }
  const { clone_url } = opened.repository
  const { head, base } = opened.pull_request
  const files = { 'package.json': '{"name":"hello","scripts":{"start":"node server.js"}}' }
  world.api.fakes.git.commit(clone_url, base.ref, files)
  world.api.fakes.git.commit(clone_url, head.ref, files)
  const developer = world.api.as('developer')
  const app = { name: 'hello', git_url: clone_url, branch: base.ref, soak_seconds: 0 }
  const { id } = (await developer.post('/api/apps', app)).body.data
  await developer.put(`/api/apps/${id}/previews/settings`, { enabled: true })
  const hook = (await developer.post('/api/webhooks', { kind: 'git', provider: 'github', app_id: id })).body
    .data
  const raw = JSON.stringify(opened)
  const { body } = await world.api.request('POST', new URL(hook.url).pathname, {
    raw,
    headers: {
      'content-type': 'application/json',
      'x-github-event': 'pull_request',
      'x-hub-signature-256': `sha256=${createHmac('sha256', hook.secret).update(raw).digest('hex')}`,
    },
  })
  expect(body.data).toMatchObject({ outcome: 'preview' })
  expect(world.api.services.previews.find(id, opened.number)).toMatchObject({ branch: head.ref })
  await world.idle()
})
