import { beforeEach, describe, expect, it } from 'vitest'
import { createSourceGuard } from '#server/builds/source-guard'
import { EngineError, type EngineVersion, type Image } from '#server/platform/engine/engine'
import { createOutboundPolicy } from '#server/platform/outbound/policy'
import { fakeEgress } from '#test/support/fake-egress'

const ID = `sha256:${'ab'.repeat(32)}`
const NAMES: Record<string, string> = {
  'registry-1.docker.io': '93.184.216.34',
  'docker.io': '93.184.216.34',
  'auth.docker.io': '93.184.216.35',
  'files.example.com': '93.184.216.36',
  'rebound.example.com': '10.0.0.7',
}

let here: Record<string, Partial<Image>>
let pulled: string[]
let challenge: string
let version: string
let takes_links: boolean
beforeEach(() => {
  here = {}
  version = '20.10.24+dfsg1'
  takes_links = true
  pulled = []
  challenge = 'Bearer realm="https://auth.docker.io/token",service="registry.docker.io"'
})
const image = (more: Partial<Image> = {}): Image =>
  ({ id: ID, tags: ['node:22'], digests: [], triggers: [], ...more }) as Image

/** The second line alone: without a filter on the engine's process, or with one. */
function guard(filtered = false) {
  return createSourceGuard({
    engine: {
      version: async () =>
        ({ version, ...(takes_links ? { takes_links_for_devices: true } : {}) }) as EngineVersion,
      async findImage(name) {
        if (/^\/|[:/]$|:-/.test(name)) throw new EngineError('failed', 'invalid reference format')
        return here[name] && image({ tags: [name], ...here[name] })
      },
      async pullImage(name) {
        pulled.push(name)
        if (name.startsWith('plain')) return image({ tags: [name] })
        if (!name.includes('triggering')) throw new EngineError('not_found', 'There is no such image.')
        return image({ triggers: ['ADD http://127.0.0.1/ /x'] })
      },
    },
    policy: createOutboundPolicy({
      allowed_private_hosts: [],
      interfaces: () => [],
      resolver: async (host) => {
        const address = NAMES[host]
        if (!address) throw Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' })
        return [{ address, family: 4 }]
      },
    }),
    client: {
      send: async () => ({ headers: { 'www-authenticate': challenge }, discard: async () => {} }),
    } as never,
    ...(filtered ? { egress: fakeEgress() } : {}),
    registryAuth: () => undefined,
  })
}
const check = (dockerfile: string, build_args: Record<string, string> = {}, filtered = false) =>
  guard(filtered).checkDockerfile(dockerfile, {
    build_args,
    isWithheld: () => false,
    onLog: () => {},
    signal: new AbortController().signal,
  })
const refusal = (what: RegExp) => ({ code: 'dockerfile_refused', message: expect.stringMatching(what) })

describe('a Dockerfile is refused, whatever keeps the engine besides', () => {
  it.each([false, true])(
    'that starts from an image which brings instructions of its own (filter: %s)',
    async (f) => {
      here['base:1'] = { triggers: ['ADD http://127.0.0.1/ /x'] }
      await expect(check('FROM base:1', {}, f)).rejects.toMatchObject(refusal(/brings ONBUILD instructions/))
    },
  )
  it.each([false, true])(
    'that starts from such an image, which is fetched first to be looked at (filter: %s)',
    async (filtered) => {
      for (const dockerfile of ['FROM triggering:1', 'FROM scratch\nCOPY --from=triggering:1 / /'])
        await expect(check(dockerfile, {}, filtered)).rejects.toMatchObject(refusal(/brings ONBUILD/))
      expect(pulled).toEqual(['triggering:1', 'triggering:1'])
    },
  )
  it.each([
    ['linux/riscv64', ''],
    ['$P', 'ARG P=linux/riscv64\n'],
    ['linux/${A}', 'ARG A=riscv64\n'],
    ['$BUILDPLATFORM', 'ARG BUILDPLATFORM=windows/amd64\n'],
    ['"linux/riscv64"', ''],
  ])('that takes a base image for another platform, which nobody looks at: %s', async (platform, before) => {
    await expect(check(`${before}FROM --platform=${platform} plain:1`)).rejects.toMatchObject(
      refusal(/takes a base image for "?(?:linux\/riscv64|windows\/amd64)"?, which is not the platform/),
    )
    await expect(check(`${before}FROM --plat\\\nform=${platform} plain:1`)).rejects.toMatchObject(
      refusal(/not the platform of this server/),
    )
  })
  it('that starts from an image of an app, by its name, a name given later, or its id', async () => {
    await expect(check('FROM portreeve/app_1:2')).rejects.toMatchObject(refusal(/below portreeve\//))
    here['innocent:1'] = { owner: 'prj_2' }
    await expect(check('FROM innocent:1')).rejects.toMatchObject(refusal(/an image of an app/))
    here[ID] = { tags: ['portreeve/app_1:2'] }
    await expect(check(`FROM ${ID}`)).rejects.toMatchObject(refusal(/by its id/))
    await expect(check(`FROM scratch\nCOPY --from=${ID} / /`)).rejects.toMatchObject(refusal(/by its id/))
  })
  it.each([false, true])(
    'that names what may be the id of an image which is there only once it is built (filter: %s)',
    async (filtered) => {
      for (const id of ['cafe', '3f', `sha256:${'ab'.repeat(32)}`, 'sha256:ab'])
        for (const dockerfile of [`FROM ${id}`, `FROM scratch\nRUN sleep 900\nCOPY --from=${id} / /`])
          await expect(check(dockerfile, {}, filtered)).rejects.toMatchObject(refusal(/by its id/))
      // An image that is here under this very name is what the builder takes.
      here['cafe:latest'] = { tags: ['cafe:latest'] }
      await expect(check('FROM cafe:latest', {}, filtered)).resolves.toBeDefined()
    },
  )
  it('that names another frontend, or steers the builder', async () => {
    await expect(check('# syntax=evil/frontend\nFROM scratch')).rejects.toMatchObject(refusal(/frontend/))
    await expect(check('FROM scratch', { buildkit_syntax: 'evil/x' })).rejects.toMatchObject(
      refusal(/one of the builder's own/),
    )
  })
  it.each([
    '--mount="type=cache",target=/a',
    '--mount="type=cache",target=/./a',
    '--mount=type=$T,target=$A',
    '--mount=type=bind,rw,target=a',
    '--network=none \\\n# a comment\n--mount=type=cache,target=/a',
  ])('that mounts what steps write to by %j, where that may take the place of devices', async (mount) => {
    const checked = () => check(`FROM scratch\nARG T=cache A=/a\nRUN ${mount} true`)
    version = '25.0.2'
    takes_links = true
    await expect(checked()).rejects.toMatchObject(refusal(/cannot hold to its place/))
    takes_links = false
    await expect(checked()).resolves.toBeDefined()
  })
  it.each([false, true])(
    'that mounts a folder of a cache, which another step can turn into this machine meanwhile (filter: %s)',
    async (filtered) => {
      const mounting = (mount: string) => check(`FROM scratch\nRUN ${mount} true`, {}, filtered)
      await expect(mounting('--mount=type=cache,target=/x,source=d')).rejects.toMatchObject(
        refusal(/mounts a folder of a cache/),
      )
      await expect(mounting('--mount=type=cache,target=/cache')).resolves.toBeDefined()
    },
  )
  it('that mounts under the name of a socket, where the builder removes what it made for a mount by its path', async () => {
    const mounting = `FROM scratch AS a\nRUN --mount=type=cache,target=/cache --mount=type=tmpfs,"dst=/x/docker.sock" true`
    await expect(check(mounting)).rejects.toMatchObject(refusal(/mounts something at \/x\/docker\.sock/))
    version = '25.0.2'
    await expect(check(mounting)).resolves.toBeDefined()
  })
  it('whose variables name one another until the builder works on them for minutes', async () => {
    const lines = ['A', 'B', 'C', 'D'].map((name, at, all) => `ENV ${name}=${`$${all[at - 1]}`.repeat(40)}`)
    await expect(check(`FROM scratch\nENV undefined=xxxxxxxx\n${lines.join('\n')}`)).rejects.toMatchObject(
      refusal(/would work on them for minutes/),
    )
  })
  it.each(['127.0.0.1:5000/x', 'rebound.example.com/x', '[::1]:5000/x', '169.254.169.254/x'])(
    'that starts from %s, or copies from it',
    async (inside) => {
      await expect(check(`FROM ${inside}`)).rejects.toThrow()
      await expect(check(`FROM scratch\nCOPY --from=${inside} / /`)).rejects.toThrow()
    },
  )
  it.each([false, true])('that adds what leads inwards (filter: %s)', async (filtered) => {
    for (const host of ['127.0.0.1', 'rebound.example.com', '2130706433', '169.254.169.254'])
      await expect(check(`FROM scratch\nADD http://${host}/x /x`, {}, filtered)).rejects.toMatchObject(
        refusal(/refused/),
      )
  })
  it('that adds anything from elsewhere while nothing filters what the engine fetches', async () => {
    const dockerfile = 'FROM scratch\nADD https://files.example.com/x /x'
    await expect(check(dockerfile)).rejects.toMatchObject({
      ...refusal(/adds files\.example\.com over the network/),
      hint: expect.stringContaining('RUN curl'),
    })
    expect((await check(dockerfile, {}, true)).text).toContain('files.example.com')
  })
})

describe('a variable with a default in the name of a base image', () => {
  /** As the engine answers: a name that is none is an error of its own. */
  beforeEach(() => {
    here['node:22-slim'] = {}
    here['docker.io/library/node:22-slim'] = {}
  })
  it.each([
    ['as its tag', 'ARG V=22\nFROM node:${V}-slim'],
    ['as its registry', 'ARG R=docker.io/library\nFROM ${R}/node:22-slim'],
    ['as all of its tag', 'ARG V=22-slim\nFROM node:${V}'],
  ])('%s is built on, though without the default it would be no name', async (_, dockerfile) => {
    await expect(check(dockerfile)).resolves.toMatchObject({ text: dockerfile })
  })
  it('is refused as before where its default leads inwards', async () => {
    const dockerfile = 'ARG R=127.0.0.1:5000\nFROM ${R}/node:22-slim'
    await expect(check(dockerfile)).rejects.toMatchObject(refusal(/127\.0\.0\.1/))
  })
})

it('a Dockerfile that may be built tells which images it names, by whichever tag, and its frontend', async () => {
  const { names } = await check(
    '# syntax=docker/dockerfile:1\nFROM node:22 AS a\nCOPY --from=a / /',
    {},
    true,
  )
  const asked = [
    'docker.io/library/node:22@sha256:1',
    'docker.io/docker/dockerfile:1',
    'a',
    'example.com/node:22',
  ]
  expect(asked.map((image) => names(image))).toEqual([true, true, false, false])
})

it('a base image that could not be looked at is told by every name that the builder has for it', async () => {
  const { unseen } = await check(
    'FROM plain:1\nCOPY --from=absent / /\nCOPY --from=e.example/a:2 / /',
    {},
    true,
  )
  const asked = [
    'docker.io/library/absent:latest',
    'absent@sha256:1',
    'e.example/a:2@sha256:1',
    'absent:2',
    'e.example/a',
    'docker.io/library/plain:1',
  ]
  expect(asked.map((image) => unseen(image)?.code)).toEqual([
    ...['not_found', 'not_found', 'not_found'],
    ...[undefined, undefined, undefined],
  ])
})
it.each(['$BUILDPLATFORM', '${TARGETPLATFORM}', `linux/\${TARGETARCH}`, 'linux'])(
  'a base image for the platform of the server is built on: %s',
  async (platform) => {
    await expect(check(`FROM --platform=${platform} plain:1`)).resolves.toBeDefined()
  },
)

describe('a registry', () => {
  const pull = (name: string, filtered = false) =>
    guard(filtered).checkImage(name, new AbortController().signal)
  it('whose tokens come from an address inside is not asked, as long as nothing filters what the engine fetches', async () => {
    await expect(pull('node:22')).resolves.toBeUndefined()
    challenge = 'Bearer realm="http://169.254.169.254/token",service="registry"'
    await expect(pull('node:22')).rejects.toMatchObject({ code: 'registry_refused' })
    challenge = 'Bearer realm="https://rebound.example.com/token"'
    await expect(pull('node:22')).rejects.toMatchObject({ code: 'registry_refused' })
    await expect(check('FROM node:22')).rejects.toMatchObject(refusal(/is refused/))
    expect(pulled).toEqual([])
  })
})
