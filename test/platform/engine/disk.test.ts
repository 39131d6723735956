import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { unusedImages } from '#server/disk/candidates'
import { createDockerEngine } from '#server/platform/engine/docker'
import { createEngineStandIn, json, type StandInAnswer } from '#test/support/engine-stand-in'

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

describe('with a thousand images that say as much of themselves as an image may', () => {
  const LABELS = {
    'portreeve.managed': 'true',
    'portreeve.installation': 'ours',
    long: 'x'.repeat(64 * 1024),
  }
  const COUNT = 1100
  /** Beginning and end of the answer of an engine around so many entries, sent one after the other. */
  function sendMany(response: ServerResponse, entry: (at: number) => object, around = ['[', ']']) {
    const entries = Array.from({ length: COUNT }, (_, at) => JSON.stringify(entry(at)))
    response.end(around.join(entries.join(',')))
  }
  const engineThat = async (answer: StandInAnswer) => {
    const server = await createEngineStandIn(answer)
    const engine = createDockerEngine({ docker_host: server.docker_host, installation: 'ours' })
    closing.push(engine.close, server.close)
    return engine
  }

  it('the disk is measured, so that it can be pruned', async () => {
    const engine = await engineThat(({ path }, response) => {
      if (path === '/info') return json(response, { DockerRootDir: '/x' })
      const image = (at: number) => ({
        Id: `sha256:${at}`,
        Labels: LABELS,
        RepoDigests: null,
        RepoTags: [`app:${at}`],
        Size: 10,
        SharedSize: 4,
        Containers: 0,
        Created: 1,
      })
      sendMany(response, image, ['{"LayersSize":7,"Images":[', '],"Containers":null,"BuildCache":[]}'])
    })
    const { images, layers_bytes } = await engine.diskUsage()
    expect({ layers_bytes, count: images.length, last: images.at(-1) }).toMatchObject({
      layers_bytes: 7,
      count: COUNT,
      last: { id: `sha256:${COUNT - 1}`, own_bytes: 6, made_by: 'us' },
    })
  })

  it('images are listed', async () => {
    const engine = await engineThat(({ path }, response) => {
      if (path !== '/images/json') return json(response, { message: 'gone' }, 404)
      sendMany(response, (at) => ({ Id: `sha256:${at}`, Labels: LABELS }))
    })
    expect(await engine.listImages({})).toEqual([])
  })

  it('instances of them are listed', async () => {
    const labels = {
      ...LABELS,
      'portreeve.app': 'app_a',
      'portreeve.release': 'rel_a',
      'portreeve.index': '0',
    }
    const engine = await engineThat((_, response) =>
      sendMany(response, (at) => ({
        Id: `c${at}`,
        Names: ['/rel_a-0'],
        Labels: labels,
        State: 'running',
        ImageID: 'sha256:1',
      })),
    )
    const running = await engine.runningInstances()
    expect(running).toHaveLength(COUNT)
    expect(running.at(-1)).toEqual({ id: `c${COUNT - 1}`, owner: { kind: 'app', id: 'app_a' } })
  })
})
