import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { fakeEgress } from '#test/support/fake-egress'

let api: TestApi
let built: number
beforeEach(async () => {
  api = await createTestApi()
  built = 0
  const { buildImage } = api.fakes.engine
  api.fakes.engine.buildImage = (...args) => {
    built += 1
    return buildImage(...args)
  }
})
afterEach(() => api.close())

async function deployed(body: object): Promise<any> {
  const { id } = (await api.as('developer').post('/api/apps', { name: 'shop', soak_seconds: 0, ...body }))
    .body.data
  await api.services.jobs.idle()
  const [{ id: deployment_id }] = (await api.as('viewer').get(`/api/apps/${id}/deployments`)).body.data
  return (await api.as('viewer').get(`/api/deployments/${deployment_id}`)).body.data
}

it.each([
  [
    'adds from this machine',
    'FROM nginx:1\nADD http://127.0.0.1:9000/ /x',
    /fetches from an address that is refused: 127\.0\.0\.1 is or leads to an address that is not public/,
  ],
  [
    'adds what a cloud tells its machines',
    'FROM nginx:1\nADD http://169.254.169.254/latest/meta-data/ /x',
    /169\.254\.169\.254 is or leads to an address that is not public/,
  ],
  [
    'hides what it adds',
    'FROM nginx:1\nARG HOST\nADD http://$HOST/ /x',
    /leaves open what http:\/\/\$HOST\/ is/,
  ],
  [
    'starts from a registry of this network',
    'FROM 10.0.0.1:5000/team/base',
    /10\.0\.0\.1 is or leads to an address that is not public/,
  ],
  [
    'starts from an image of another app',
    'ARG BASE=portreeve/app_x:dep_y\nFROM $BASE',
    /uses an image below portreeve\//,
  ],
  ['is no Dockerfile', '{"syntax":"example.com/evil"}', /begins like one of another kind/],
  [
    'is read by a frontend of its own',
    '# syntax=example.com/evil\nFROM nginx:1',
    /names a frontend other than docker\/dockerfile/,
  ],
])('a Dockerfile that %s is refused before the engine sees it', async (_what, dockerfile, message) => {
  const deployment = await deployed({ dockerfile })
  expect(deployment).toMatchObject({
    status: 'failed',
    error: {
      step: 'build',
      code: 'dockerfile_refused',
      message: expect.stringMatching(message),
      hint: expect.any(String),
    },
  })
  expect(built).toBe(0)
})
it('a Dockerfile that adds over the network is refused where the engine itself cannot be filtered', async () => {
  await api.close()
  api = await createTestApi({ egress: fakeEgress({ active: false, reason: 'no root' }) })
  expect(await deployed({ dockerfile: 'FROM scratch\nADD https://93.184.215.14/x /x' })).toMatchObject({
    status: 'failed',
    error: { code: 'dockerfile_refused', hint: expect.stringMatching(/RUN curl/) },
  })
})
it('arguments that steer the builder are refused when they are set', async () => {
  const answer = await api.as('developer').post('/api/apps', {
    name: 'shop',
    dockerfile: 'FROM nginx:1',
    build: { args: { BUILDKIT_CACHE_MOUNT_NS: 'other' } },
  })
  expect(answer.status).toBe(422)
  expect(answer.body.error.message).toMatch(/BUILDKIT_/)
})
it('so is one of a repository', async () => {
  const url = 'https://git.example.com/team/shop.git'
  api.fakes.git.commit(url, 'main', { Dockerfile: 'FROM nginx:1\nADD http://127.0.0.1:9000/ /x\n' })
  expect(await deployed({ git_url: url })).toMatchObject({
    status: 'failed',
    error: { code: 'dockerfile_refused' },
  })
  expect(built).toBe(0)
})
it('others are built as they are', async () => {
  expect(
    await deployed({
      dockerfile:
        '# syntax=docker/dockerfile:1\nFROM nginx:1 AS base\nFROM base\nCOPY . $HOME\nCOPY --from=base /a /b',
    }),
  ).toMatchObject({ status: 'live' })
  expect(built).toBe(1)
})
