import { afterEach, expect, it } from 'vitest'
import { unusedImages } from '#server/disk/candidates'
import { createDockerEngine } from '#server/platform/engine/docker'
import { createEngineStandIn, json } from '#test/support/engine-stand-in'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

it('an image of a registry that says it belongs to another installation goes like any other', async () => {
  const foreign = { 'portreeve.managed': 'true', 'portreeve.installation': 'other' }
  const image = (Id: string, Labels: Record<string, string> | null, RepoDigests: string[]) => ({
    Id,
    Labels,
    RepoDigests,
    RepoTags: ['<none>:<none>'],
    Size: 10,
    SharedSize: 0,
    Containers: 0,
    Created: 1,
  })
  const server = await createEngineStandIn(({ path }, response) =>
    json(
      response,
      path === '/info'
        ? { DockerRootDir: '/x' }
        : {
            Images: [
              image('fetched', null, ['evil.example/a@sha256:1']),
              image('liar', foreign, ['evil.example/b@sha256:2']),
              image('built', foreign, ['<none>@<none>']),
              image('kept-by-its-engine', foreign, ['portreeve/app_x@sha256:3']),
            ],
          },
    ),
  )
  const engine = createDockerEngine({ docker_host: server.docker_host, installation: 'ours' })
  closing.push(engine.close, server.close)
  const found = unusedImages(await engine.diskUsage(), [])
  expect(found.map(({ id }) => id)).toEqual(['fetched', 'liar'])
})
