import { createServer, type Server } from 'node:http'
import { describe, expect, it } from 'vitest'
import { parseCompose } from '#server/compose/parse'
import { fromCaprover } from '../../cli/project/import/caprover.ts'
import { fromCompose } from '../../cli/project/import/compose.ts'
import { engineAt, fromContainers } from '../../cli/project/import/containers.ts'
import { fromCoolify } from '../../cli/project/import/coolify.ts'
import { fromDokploy } from '../../cli/project/import/dokploy.ts'
import { notesText, secretsOf, secretsText, settle } from '../../cli/project/import/settle.ts'
import type { Moved } from '../../cli/project/import/moved.ts'
import { readSecrets } from '../../cli/project/secrets.ts'

/** What would be applied, and what the person is told. */
function outcome(moved: Moved) {
  const { file, text, notes } = settle(moved, 'moved')
  expect(text).not.toContain('canary')
  expect(notesText(notes)).not.toContain('canary')
  return { file, text, notes: notes.map(({ what, at, message }) => `${what} ${at} ${message}`).join('\n') }
}

describe('an export of Coolify', () => {
  const app = {
    uuid: 'abc',
    name: 'My Shop',
    fqdn: 'https://shop.example.com,http://shop.example.com/v1,https://x.203.0.113.7.sslip.io',
    git_repository: 'team/shop',
    git_branch: 'main',
    build_pack: 'nixpacks',
    base_directory: '/apps/web',
    start_command: 'npm start',
    pre_deployment_command: 'npm run migrate',
    ports_exposes: '3000,9000',
    health_check_enabled: true,
    health_check_path: '/up',
    limits_memory: '512m',
    limits_cpus: '0',
    ports_mappings: '25:25',
    environment_variables: [
      { key: 'LOG_LEVEL', value: 'info', is_preview: false },
      { key: 'LOG_LEVEL', value: 'debug', is_preview: true },
      { key: 'API_KEY', value: "alpha-'canary" },
    ],
  }
  it('becomes apps with their source, settings, domains and variables; secrets stand apart', () => {
    const moved = fromCoolify([app])
    const { file, notes } = outcome(moved)
    expect(file).toEqual({
      project: 'moved',
      apps: {
        'my-shop': {
          git_url: 'https://github.com/team/shop.git',
          branch: 'main',
          base_directory: 'apps/web',
          build: { start_command: 'npm start', release_command: 'npm run migrate' },
          port: 3000,
          health_check: { type: 'http', path: '/up' },
          limits: { memory_bytes: 512 * 1024 ** 2 },
          domains: [
            { hostname: 'shop.example.com' },
            { hostname: 'shop.example.com', path: '/v1', ssl_mode: 'off' },
          ],
          variables: { LOG_LEVEL: { value: 'info', secret: false }, API_KEY: { secret: true } },
        },
      },
    })
    expect(notes).toContain('refused application My Shop ports_mappings is not taken')
    expect(notes).toContain('changed application My Shop ports_exposes only 3000 takes requests')
    const item = { kind: 'variable', of: 'my-shop', name: 'API_KEY', fields: {} } as const
    expect(secretsOf(moved).of(item)).toBe("alpha-'canary")
  })
  it('has images, Dockerfiles, compose files, services and databases', () => {
    const { file, notes } = outcome(
      fromCoolify({
        applications: [
          {
            name: 'a',
            build_pack: 'dockerimage',
            docker_registry_image_name: 'ghcr.io/x/y',
            docker_registry_image_tag: '2',
          },
          { name: 'b', build_pack: 'dockerfile', dockerfile: 'FROM nginx:1.29' },
          {
            name: 'c',
            build_pack: 'dockercompose',
            git_repository: 'https://git.example.com/c.git',
            docker_compose_location: '/deploy/compose.yaml',
          },
          { name: 'd' },
        ],
        services: [{ name: 'e', docker_compose_raw: 'services: { web: { image: nginx } }' }],
        databases: [{ name: 'db', database_type: 'standalone-postgresql', image: 'postgres:16-alpine' }],
      }),
    )
    expect(file.apps).toMatchObject({
      a: { image: 'ghcr.io/x/y:2' },
      b: { dockerfile: 'FROM nginx:1.29' },
      c: { source: 'compose', git_url: 'https://git.example.com/c.git', compose_path: 'deploy/compose.yaml' },
      e: { compose: 'services: { web: { image: nginx } }' },
    })
    expect(file.databases).toEqual({ db: { engine: 'postgres', version: '16' } })
    expect(notes).toContain('refused application d names no repository')
    expect(notes).toContain('changed database db is the database db, which begins empty')
  })
})

describe('an export of Dokploy', () => {
  it('has projects with environments, applications, compose files and databases', () => {
    const project = {
      name: 'p',
      environments: [
        {
          applications: [
            {
              applicationId: 'x',
              name: 'Web',
              sourceType: 'github',
              owner: 'team',
              repository: 'web',
              branch: 'main',
              buildPath: '/',
              buildType: 'dockerfile',
              dockerfile: 'docker/Dockerfile',
              env: 'LOG_LEVEL=info\nDB_PASSWORD=beta-canary',
              replicas: 2,
              memoryLimit: '268435456',
              cpuLimit: '500000000',
              domains: [
                { host: 'web.example.com', port: 4000, https: true, path: '/' },
                { host: 'a.traefik.me' },
              ],
              mounts: [{ type: 'volume', mountPath: '/data', volumeName: 'web-data' }],
            },
            { name: 'dropped', sourceType: 'drop' },
          ],
          compose: [
            { composeId: 'y', name: 'stack', sourceType: 'raw', composeFile: 'services: {}', env: '' },
          ],
          postgres: [{ name: 'Main DB', dockerImage: 'postgres:15' }],
        },
      ],
    }
    const { file, notes } = outcome(fromDokploy({ result: { data: { json: [project] } } }))
    expect(file.apps).toEqual({
      web: {
        git_url: 'https://github.com/team/web.git',
        branch: 'main',
        build: { dockerfile_path: 'docker/Dockerfile' },
        port: 4000,
        replicas: 2,
        limits: { memory_bytes: 268435456, cpus: 0.5 },
        domains: [{ hostname: 'web.example.com' }],
        variables: { LOG_LEVEL: { value: 'info', secret: false }, DB_PASSWORD: { secret: true } },
        mounts: { '/data': { volume: 'web-data' } },
      },
      stack: { compose: 'services: {}' },
    })
    expect(file.databases).toEqual({ 'main-db': { engine: 'postgres', version: '15' } })
    expect(file.volumes).toEqual({ 'web-data': {} })
    expect(notes).toContain(
      'changed application Web mount /data is the volume web-data at /data. It begins empty',
    )
    expect(notes).toContain('refused application dropped comes from drop')
  })
})

describe('a configuration of CapRover', () => {
  it('has apps with images or repositories, domains, variables and volumes', () => {
    const { file, notes } = outcome(
      fromCaprover({
        appDefinitions: {
          blog: {
            deployedVersion: 2,
            versions: [
              { version: 1, deployedImageName: 'ghost:4' },
              { version: 2, deployedImageName: 'ghost:5' },
            ],
            containerHttpPort: 2368,
            instanceCount: 1,
            forceSsl: true,
            customDomain: [{ publicDomain: 'blog.example.com', hasSsl: true }],
            envVars: [
              { key: 'url', value: 'https://blog.example.com' },
              { key: 'bad name', value: 'x' },
            ],
            volumes: [{ containerPath: '/var/lib/ghost', volumeName: 'ghost' }],
            ports: [],
          },
          api: {
            appPushWebhook: { repoInfo: { repo: 'github.com/team/api', branch: 'main' } },
            instanceCount: 1,
          },
          mine: {
            deployedVersion: 0,
            versions: [{ version: 0, deployedImageName: 'img-captain-mine:0' }],
            notExposeAsWebApp: true,
          },
        },
      }),
    )
    expect(file.apps).toEqual({
      blog: {
        image: 'ghost:5',
        port: 2368,
        replicas: 1,
        domains: [{ hostname: 'blog.example.com', force_https: true }],
        mounts: { '/var/lib/ghost': { volume: 'ghost' } },
        variables: { url: { value: 'https://blog.example.com', secret: false } },
      },
      api: { git_url: 'https://github.com/team/api', branch: 'main', port: 80, replicas: 1 },
      mine: { source: 'upload' },
    })
    expect(file.volumes).toEqual({ ghost: {} })
    expect(notes).toContain('docker run --rm -v captain--ghost:/from:ro -v vol_…:/to')
    expect(notes).toContain('refused app blog bad name is no name that a variable can have here.')
    expect(notes).toContain('send its source with portreeve deploy --app mine')
  })
})

describe('a compose file', () => {
  it('becomes one app; what its reader refuses is said by path', () => {
    const good = outcome(
      fromCompose(
        'services: { web: { image: "nginx:${TAG}", ports: ["80"], hostname: x } }',
        'shop',
        'TAG=1\nOTHER=2',
      ),
    )
    expect(good.file.apps?.shop).toMatchObject({
      source: 'compose',
      variables: { TAG: { value: '1', secret: false } },
    })
    const bad = outcome(
      fromCompose('services: { web: { image: nginx, privileged: true } }', 'shop', undefined),
    )
    expect(bad.file.apps).toEqual({})
    expect(bad.notes).toContain('refused compose file shop services.web.privileged')
  })
})

const environmentsOf = (text: string, variables: Record<string, string>) =>
  Object.fromEntries(
    parseCompose(text, { variables }).services.map(({ name, environment }) => [name, environment]),
  )

describe('a compose file with passwords in clear', () => {
  const TEXT = `# ours
services:
  web:
    image: nginx:1.29
    environment:
      DB_PASSWORD: alpha-canary
      URL: postgres://shop:beta-canary@db/shop # where
      STRIPE: sk_live_canarycanary1
      FROM_ENV: "\${TOKEN}"
      SECRET_BY_DEFAULT: "\${ADMIN_SECRET:-gamma-canary}"
      PORT: 8080
  db:
    image: postgres:17
    environment:
      - PGPASSWORD=delta$$canary
      - DB_PASSWORD=epsilon-canary
      - POSTGRES_USER=shop
`
  it('has them as variables of the app, and as references in the file; the rest stays as it was written', () => {
    const moved = fromCompose(TEXT, 'shop', 'TOKEN=zeta-canary')
    const { text, file, notes } = outcome(moved)
    expect(text + notes).not.toMatch(/canary/)
    expect(moved.secrets.shop).toEqual({
      DB_PASSWORD: 'alpha-canary',
      URL: 'postgres://shop:beta-canary@db/shop',
      STRIPE: 'sk_live_canarycanary1',
      ADMIN_SECRET: 'gamma-canary',
      TOKEN: 'zeta-canary',
      PGPASSWORD: 'delta$canary',
      DB_DB_PASSWORD: 'epsilon-canary',
    })
    expect(file.apps!.shop!.compose).toContain('# ours\n')
    expect(file.apps!.shop!.compose).toContain('- DB_PASSWORD=${DB_DB_PASSWORD}')
    expect(file.apps!.shop!.variables!.URL).toEqual({ secret: true })
    expect(notes).toContain(
      'services.db.environment.DB_PASSWORD looks like a secret: it is the variable DB_DB_PASSWORD',
    )
    // The reader of compose files finds the same values again.
    const { web, db } = environmentsOf(file.apps!.shop!.compose!, moved.secrets.shop!)
    expect(web).toMatchObject({
      DB_PASSWORD: 'alpha-canary',
      SECRET_BY_DEFAULT: 'gamma-canary',
      FROM_ENV: 'zeta-canary',
    })
    expect(db).toMatchObject({
      PGPASSWORD: 'delta$canary',
      DB_PASSWORD: 'epsilon-canary',
      POSTGRES_USER: 'shop',
    })
  })
  it('puts what an address refers to into it, since a variable refers to nothing', () => {
    const text = `services:
  web:
    image: nginx:1.29
    environment:
      A_URL: "postgres://\${DB_USER:-shop}:\${DB_PASS:-alpha-canary}@db/\${DB_NAME}"
      B_TOKEN: beta-\${PART-canary}$$1
      C_URL: "postgres://\${NOWHERE}:\${DB_PASS:-x}@db"
      D_SECRET: "\${ONE:-\${TWO}}"
`
    const moved = fromCompose(text, 'shop', 'DB_NAME=goods\nDB_USER=')
    expect(moved.secrets.shop).toEqual({
      A_URL: 'postgres://shop:alpha-canary@db/goods',
      B_TOKEN: 'beta-canary$1',
    })
    const { compose } = outcome(moved).file.apps!.shop!
    expect(compose).toContain('A_URL: "${A_URL}"')
    // What stays is said, and where.
    expect(outcome(moved).notes).toMatch(
      /services\.web\.environment\.C_URL looks like a secret and stands in the file in clear/,
    )
    expect(compose).toContain('C_URL: "postgres://${NOWHERE}:${DB_PASS:-x}@db"')
    expect(compose).toContain('D_SECRET: "${ONE:-${TWO}}"')
  })
  it('of another system has them as variables, too', () => {
    const moved = fromCoolify({ services: [{ name: 'shop', docker_compose_raw: TEXT }] })
    expect(outcome(moved).text).not.toMatch(/canary/)
    expect(moved.secrets.shop).toMatchObject({ DB_PASSWORD: 'alpha-canary' })
  })
  it('and without any stays as it is, to the letter', () => {
    const text =
      'services: { web: { image: "nginx:1.29",   environment: { DB_PASSWORD: "${DB_PASSWORD}" } } }'
    expect(outcome(fromCompose(text, 'shop', 'DB_PASSWORD=x')).file.apps!.shop!.compose).toBe(text)
  })
})

describe('containers that run on an engine', () => {
  /** Labels of an image that Portreeve built. */
  const BUILT = { 'portreeve.managed': 'true', 'portreeve.app': 'app_1' }
  const answers: Record<string, unknown> = {
    '/containers/json': [{ Id: 'one' }, { Id: 'ours' }, { Id: 'edge' }, { Id: 'inherited' }, { Id: 'db' }],
    '/containers/ours/json': {
      Name: '/rel_1-0',
      Image: 'sha256:built',
      Config: { Image: 'sha256:built', Labels: { ...BUILT, 'portreeve.index': '0' } },
    },
    '/containers/edge/json': {
      Name: '/portreeve-edge-1',
      Image: 'sha256:gone',
      Config: { Image: 'haproxy:3', Labels: { 'portreeve.managed': 'true', 'portreeve.edge': '1' } },
    },
    '/containers/inherited/json': {
      Name: '/by-hand',
      Image: 'sha256:built',
      Config: { Image: 'shop:1', Labels: { ...BUILT, 'com.example.by': 'hand' } },
    },
    '/images/sha256%3Abuilt/json': { Config: { Labels: BUILT } },
    '/containers/one/json': {
      Name: '/web',
      Image: 'sha256:1',
      Config: {
        Image: 'nginx:1.29',
        Cmd: ['nginx', '-g', 'daemon off;'],
        Env: ['PATH=/bin', 'APP_TOKEN=gamma-canary', 'MODE=live'],
        ExposedPorts: { '80/tcp': {} },
        Labels: { 'com.docker.compose.project': 'shop', 'com.docker.compose.service': 'web' },
      },
      HostConfig: { Memory: 134217728, NanoCpus: 250000000, PortBindings: { '8080/tcp': [{}] } },
      Mounts: [
        { Type: 'volume', Name: 'files', Destination: '/files' },
        { Type: 'volume', Name: 'a'.repeat(64), Destination: '/cache' },
        { Type: 'volume', Name: 'b'.repeat(64), Destination: '/more' },
        { Type: 'bind', Source: '/etc/x', Destination: '/x' },
      ],
    },
    '/images/sha256%3A1/json': { Config: { Env: ['PATH=/bin'], Cmd: ['nginx'] } },
    '/containers/db/json': { Name: '/pg', Image: 'sha256:2', Config: { Image: 'postgres:17', Env: [] } },
  }
  it('become apps and databases; those of Portreeve are left out, and the engine is only read', async () => {
    const asked: string[] = []
    const server: Server = createServer((request, answer) => {
      asked.push(`${request.method} ${request.url}`)
      const found = answers[request.url!]
      answer.statusCode = found === undefined ? 404 : 200
      answer.end(JSON.stringify(found ?? {}))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    const moved = await fromContainers(engineAt(`tcp://127.0.0.1:${port}`))
    server.close()
    const { file, notes } = outcome(moved)
    expect(file.apps).toEqual({
      'shop-web': {
        image: 'nginx:1.29',
        port: 8080,
        build: { start_command: "nginx -g 'daemon off;'" },
        limits: { memory_bytes: 134217728, cpus: 0.25 },
        variables: { APP_TOKEN: { secret: true }, MODE: { value: 'live', secret: false } },
        mounts: {
          '/files': { volume: 'files' },
          '/cache': { volume: 'shop-web-data' },
          '/more': { volume: 'shop-web-data-2' },
        },
      },
      // Started by hand from an image that Portreeve built, whose labels it has.
      'by-hand': { image: 'shop:1' },
    })
    expect(file.databases).toEqual({ pg: { engine: 'postgres', version: '17' } })
    expect(file.volumes).toEqual({ files: {}, 'shop-web-data': {}, 'shop-web-data-2': {} })
    expect(notes).toContain('changed container shop-web /files is the volume files at /files.')
    expect(notes).toContain('refused container shop-web /x is a folder of the server.')
    expect(asked.every((line) => line.startsWith('GET '))).toBe(true)
    await expect(engineAt('unix:///nonexistent.sock')('/containers/json')).rejects.toThrow(
      'does not answer (ENOENT)',
    )
  })
})

describe('what is moved in', () => {
  it.each([fromCoolify, fromDokploy, fromCaprover])('is nothing where the file is another: %o', (convert) => {
    for (const tree of [
      null,
      1,
      'x',
      [],
      {},
      [null],
      { applications: 1 },
      { appDefinitions: { a: null } },
      { environments: [1] },
    ])
      expect(settle(convert(tree), undefined).file.apps).toEqual({})
  })
  it('refuses an app that a project file cannot hold, with the reason, and takes the others', () => {
    const { file, notes } = outcome(
      fromCoolify([
        { name: 'a', git_repository: 'x/y', ports_exposes: '99999' },
        { name: 'b', git_repository: 'x/y' },
      ]),
    )
    expect(Object.keys(file.apps!)).toEqual(['b'])
    expect(notes).toContain('refused app a.port must be at most 65535.')
    expect(notes).not.toContain('is the app a.')
  })
  it('writes secrets so that apply reads them', () => {
    const moved = fromCoolify([
      {
        name: 'a',
        git_repository: 'x/y',
        envs: [
          { key: 'A_TOKEN', value: 'p w#"$x\\n' },
          { key: 'B_TOKEN', value: 'two\nlines' },
          { key: 'C_TOKEN', value: "it's" },
          { key: 'D_TOKEN', value: "`x'" },
        ],
      },
    ])
    const read = readSecrets(secretsText(moved))
    for (const [name, value] of Object.entries(moved.secrets.a!))
      expect(read.of({ kind: 'variable', of: 'a', name, fields: {} })).toBe(value)
  })
})
