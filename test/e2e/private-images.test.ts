import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { docker, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { type Registry, REGISTRY_LOGIN, startRegistry } from '#test/support/registry'
import { betrayed, filesBelow, processList } from '#test/support/traces'

let portreeve: Portreeve
let registry: Registry
let image: string
beforeAll(async () => {
  registry = await startRegistry()
  image = registry.publish('nginx:stable', 'team/web:1')
  portreeve = await startPortreeve({ env: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: registry.host } })
})
afterAll(async () => {
  await portreeve?.dispose()
  await registry?.close()
})

const save = (login: { username: string; password: string }) =>
  portreeve.call('POST', '/api/registries', { name: 'ours', host: registry.host, ...login })
const isHere = () => docker('images', '-q', image) !== ''
async function firstDeployment(name: string, source: Record<string, unknown> = { image }) {
  const created = await portreeve.call('POST', '/api/apps', {
    name,
    health_check: { path: '/' },
    soak_seconds: 1,
    ...source,
  })
  expect(created.status, JSON.stringify(created.body)).toBe(201)
  const { body } = await portreeve.call('GET', `/api/apps/${created.body.data.id}/deployments`)
  return { app: created.body.data, deployment: await portreeve.untilDeployment(body.data[0].id) }
}

describe('an image in a private registry', () => {
  it('is not pulled without a login, and the deployment says what to do', async () => {
    const { deployment } = await firstDeployment('locked')
    expect(deployment).toMatchObject({
      status: 'failed',
      error: {
        step: 'build',
        message: expect.stringMatching(/registry/i),
        hint: expect.stringMatching(/[Rr]egistr/),
      },
    })
    expect(isHere()).toBe(false)
  })
  it('is not pulled with a wrong password either: saving it is refused by asking the registry', async () => {
    const wrong = await save({ ...REGISTRY_LOGIN, password: 'canary-wrong-registry-password' })
    expect([wrong.status, wrong.body.error]).toEqual([
      422,
      expect.objectContaining({ message: expect.stringContaining('was refused by the registry') }),
    ])
    expect((await portreeve.call('GET', '/api/registries')).body.total).toBe(0)
  })
  it('is pulled with a login that the registry accepted, and goes live', async () => {
    const saved = await save(REGISTRY_LOGIN)
    expect([saved.status, saved.body.data]).toEqual([
      201,
      expect.objectContaining({ host: registry.host, verified_at: expect.any(String) }),
    ])
    expect(isHere()).toBe(false)
    const { deployment } = await firstDeployment('opened')
    expect(deployment).toMatchObject({ status: 'live', error: null })
    expect((await portreeve.visit('opened.apps.test')).status).toBe(200)
  })
  it('is a base image of builds as well', async () => {
    registry.forget()
    const { deployment } = await firstDeployment('derived', {
      dockerfile: `FROM ${image}\nRUN echo derived > /usr/share/nginx/html/derived.txt`,
      port: 80,
    })
    expect(deployment, JSON.stringify(deployment)).toMatchObject({ status: 'live', error: null })
    expect((await portreeve.visit('derived.apps.test', '/derived.txt')).body).toBe('derived\n')
  })
  it('is no base image where it brings instructions of its own, which nobody has read', async () => {
    const made = 'ptr-test/published:1'
    const dockerfile = `FROM ${image}\nONBUILD RUN echo canary-of-the-base && false`
    execFileSync('/usr/bin/docker', ['build', '--quiet', '--tag', made, '-'], { input: dockerfile })
    const triggering = registry.publish(made, 'team/triggering:1')
    docker('rmi', made)
    const { app, deployment } = await firstDeployment('triggered', { dockerfile: `FROM ${triggering}` })
    expect(deployment).toMatchObject({
      status: 'failed',
      error: { code: 'dockerfile_refused', message: expect.stringContaining('brings ONBUILD instructions') },
    })
    const log = await portreeve.call('GET', `/api/apps/${app.id}/logs?type=build`)
    expect(JSON.stringify(log.body)).not.toContain('canary-of-the-base')
  })
  it('that a build of another app made cannot be run by naming it or the beginning of its id', async () => {
    const { body } = await portreeve.call('GET', '/api/apps')
    const derived = body.data.find(({ name }: { name: string }) => name === 'derived')
    const [id = '', tag = ''] = docker(
      'images',
      '--filter',
      `label=portreeve.app=${derived.id}`,
      '--format',
      '{{.ID}} {{.Repository}}:{{.Tag}}',
    )
      .split('\n')[0]!
      .split(' ')
    const named = await portreeve.call('POST', '/api/apps', { name: 'named', image: tag })
    expect(tag).toMatch(/^portreeve\//)
    expect([named.status, named.body.error?.message]).toEqual([422, expect.stringContaining('image:')])
    const { deployment } = await firstDeployment('prefixed', { image: id })
    expect(deployment).toMatchObject({
      status: 'failed',
      error: { step: 'build', code: 'image_not_found' },
    })
  })
  it('is not pulled again once the registry has another password: the deployment says so, and the app serves on', async () => {
    registry.revoke()
    const { body } = await portreeve.call('GET', '/api/apps')
    const { id } = body.data.find(({ name }: { name: string }) => name === 'opened')
    const again = await portreeve.call('POST', `/api/apps/${id}/deploy`, {})
    expect(await portreeve.untilDeployment(again.body.data.id)).toMatchObject({
      status: 'failed',
      error: { step: 'build', message: expect.stringMatching(/refused|login|credential/i) },
    })
    expect((await portreeve.visit('opened.apps.test')).status).toBe(200)
  })
  it('leaves no trace of the password: in no process, log, answer, image, container or file', async () => {
    const { body } = await portreeve.call('GET', '/api/apps')
    const paths = [
      '/api/registries',
      '/api/audit-logs?per_page=100',
      ...body.data.flatMap(({ id }: { id: string }) => [
        `/api/apps/${id}`,
        `/api/apps/${id}/deployments`,
        `/api/apps/${id}/logs?type=build&tail=5000`,
      ]),
    ]
    const answers = await Promise.all(
      paths.map(
        async (path) => [`GET ${path}`, JSON.stringify((await portreeve.call('GET', path)).body)] as const,
      ),
    )
    const containers = body.data.flatMap(({ id }: { id: string }) =>
      docker('ps', '-aq', '--filter', `label=portreeve.app=${id}`).split('\n').filter(Boolean),
    )
    const images = containers.map((id: string) => docker('inspect', id, '--format', '{{.Image}}'))
    expect(images.length).toBeGreaterThan(1)
    expect(
      betrayed(
        {
          'the password': REGISTRY_LOGIN.password,
          'the wrong password': 'canary-wrong-registry-password',
        },
        {
          ...Object.fromEntries(answers),
          'the log of the server': portreeve.output(),
          'the process list': processList(),
          'docker inspect': docker('inspect', ...containers, ...images),
          'docker history': images.map((id: string) => docker('history', '--no-trunc', id)).join('\n'),
          ...filesBelow(portreeve.data_directory, ['keys/']),
        },
      ),
    ).toEqual([])
  })
})
