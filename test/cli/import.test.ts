import { createServer, type Server } from 'node:http'
import { describe, expect, it } from 'vitest'
import { parseCompose } from '#server/compose/parse'
import type { Change } from '#server/project-file/diff'
import { clashesOf } from '../../cli/project/checks.ts'
import { fromCaprover } from '../../cli/project/import/caprover.ts'
import { fromCompose } from '../../cli/project/import/compose.ts'
import { engineAt, fromContainers } from '../../cli/project/import/containers.ts'
import { fromCoolify } from '../../cli/project/import/coolify.ts'
import { fromDokploy } from '../../cli/project/import/dokploy.ts'
import { notesText, secretsOf, secretsText, settle, writable } from '../../cli/project/import/settle.ts'
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
            {
              composeId: 'y',
              name: 'stack',
              sourceType: 'raw',
              composeFile: 'services: { web: { image: nginx } }',
              env: '',
            },
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
      stack: { compose: 'services: { web: { image: nginx } }' },
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
        '/shop',
      ),
    )
    expect(good.file.apps?.shop).toMatchObject({
      source: 'compose',
      variables: { TAG: { value: '1', secret: false } },
    })
    const bad = outcome(
      fromCompose('services: { web: { image: nginx, privileged: true } }', 'shop', undefined, '/shop'),
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
    const moved = fromCompose(TEXT, 'shop', 'TOKEN=zeta-canary', '/shop')
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
    const moved = fromCompose(text, 'shop', 'DB_NAME=goods\nDB_USER=', '/shop')
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
    expect(outcome(fromCompose(text, 'shop', 'DB_PASSWORD=x', '/shop')).file.apps!.shop!.compose).toBe(text)
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

describe('what an export does not hold, or cannot be had here', () => {
  const coolify = (app: object) =>
    outcome(fromCoolify([{ name: 'a', git_repository: 'x/y', environment_variables: [], ...app }]))

  it('of Coolify are variables and volumes, which its list of applications does not tell', () => {
    const { notes } = outcome(fromCoolify([{ name: 'a', git_repository: 'x/y' }]))
    expect(notes).toMatch(/refused application a variables are not in the export: .*\/envs/)
    expect(notes).toMatch(/refused application a volumes are not in the export: .*\/storages/)
    const whole = coolify({ persistent_storages: [], file_storages: [] })
    expect(whole.notes).not.toContain('are not in the export')
  })
  it('of Coolify are values that its token may not read; nothing becomes an empty secret', () => {
    const { file, notes } = coolify({
      environment_variables: [{ key: 'API_TOKEN' }, { key: 'EMPTY', value: '' }],
    })
    expect(file.apps!.a!.variables).toEqual({ EMPTY: { value: '', secret: false } })
    expect(notes).toContain('refused application a API_TOKEN has no value in the export')
  })
  it('of Coolify are volumes with a name; folders and files of the server are told', () => {
    const { file, notes } = coolify({
      persistent_storages: [
        { name: 'abc-data', mount_path: '/data', host_path: null },
        { name: 'abc-host', mount_path: '/srv', host_path: '/srv/x' },
      ],
      file_storages: [{ fs_path: '/x.conf', mount_path: '/etc/x.conf', content: 'alpha-canary' }],
    })
    const answer = { persistent_storages: [{ name: 'abc-data', mount_path: '/data' }] }
    expect(coolify({ storages: answer }).file.apps!.a!.mounts).toEqual({ '/data': { volume: 'abc-data' } })
    expect(file.apps!.a!.mounts).toEqual({ '/data': { volume: 'abc-data' } })
    expect(notes).toContain('docker run --rm -v abc-data:/from:ro')
    expect(notes).toContain('refused application a volume /srv is a folder of the server.')
    expect(notes).toContain('refused application a file /etc/x.conf ')
  })
  it('of pages with a password is that password: it is told that everybody could come in', () => {
    const { notes } = coolify({ is_http_basic_auth_enabled: true, http_basic_auth_password: 'alpha-canary' })
    expect(notes).toMatch(/refused application a password of its page .*basic_auth/)
    const caprover = outcome(
      fromCaprover({
        appDefinitions: {
          b: {
            deployedVersion: 0,
            versions: [{ version: 0, deployedImageName: 'nginx:1' }],
            httpAuth: { user: 'u', passwordHashed: 'beta-canary' },
            redirectDomain: 'www.example.com',
          },
        },
      }),
    )
    expect(caprover.notes).toMatch(/refused app b password of its page .*basic_auth/)
    expect(caprover.notes).toContain('refused app b redirectDomain')
  })
  it('of Coolify are domains with a port of their own, and those of services', () => {
    const { notes } = coolify({
      fqdn: 'https://a.example.com:8080',
      ports_exposes: '3000',
      docker_compose_domains: '{"web":{"domain":"https://web.example.com"}}',
      redirect: 'www',
    })
    expect(notes).toContain('changed application a fqdn https://a.example.com:8080')
    expect(notes).toContain('refused application a docker_compose_domains')
    expect(notes).toContain('refused application a redirect')
    const service = outcome(
      fromCoolify({
        services: [
          {
            name: 's',
            uuid: 'u1',
            docker_compose_raw:
              'services: { web: { image: nginx, environment: { PASS: $SERVICE_PASSWORD_X } } }',
            environment_variables: [{ key: 'SERVICE_PASSWORD_X', value: 'gamma-canary' }],
            applications: [{ name: 'web', fqdn: 'https://s.example.com' }],
          },
        ],
      }),
    )
    // The data that are copied over were made with the old password.
    expect(service.file.apps!.s!.variables).toEqual({ SERVICE_PASSWORD_X: { secret: true } })
    expect(service.notes).toContain('refused service s domain https://s.example.com')
  })
  it('of Dokploy are variables that a project shares, ports of further domains and files', () => {
    const { file, notes } = outcome(
      fromDokploy({
        env: 'SHARED=alpha\nDB_PASSWORD=beta-canary',
        environments: [
          {
            env: 'STAGE=live',
            applications: [
              {
                name: 'web',
                sourceType: 'docker',
                dockerImage: 'nginx:1',
                password: 'gamma-canary',
                env: 'A=${{project.SHARED}}/x\nB_PASSWORD=${{project.DB_PASSWORD}}\nC=${{environment.STAGE}}\nD=${{project.NONE}}',
                buildSecrets: 'X=delta-canary',
                domains: [
                  { host: 'a.example.com', port: 80 },
                  { host: 'b.example.com', port: 9000 },
                ],
              },
            ],
          },
        ],
      }),
    )
    expect(file.apps!.web!.variables).toEqual({
      A: { value: 'alpha/x', secret: false },
      B_PASSWORD: { secret: true },
      C: { value: 'live', secret: false },
    })
    expect(notes).toContain('refused application web D refers to project.NONE')
    expect(notes).toContain('refused application web domain b.example.com asks for port 9000')
    expect(notes).toContain('refused application web buildSecrets')
    expect(notes).toContain('refused application web registry')
  })
  it('of containers are their own health checks and further ports; their entry points are a part of the command', async () => {
    const answers: Record<string, unknown> = {
      '/containers/json': [{ Id: 'x' }],
      '/containers/x/json': {
        Name: '/x',
        Image: 'sha256:1',
        Config: {
          Image: 'nginx:1',
          Cmd: ['nginx'],
          Entrypoint: ['/mine.sh'],
          Healthcheck: { Test: ['CMD', 'true'] },
          Labels: { 'traefik.http.routers.x.rule': 'Host(`x.example.com`)' },
        },
        HostConfig: { PortBindings: { '25/tcp': [{}], '53/udp': [{}], '80/tcp': [{}] } },
      },
      '/images/sha256%3A1/json': { Config: { Cmd: ['nginx'], Entrypoint: ['/docker-entrypoint.sh'] } },
    }
    const { file, notes } = outcome(await fromContainers((path) => Promise.resolve(answers[path])))
    // What is started here takes the place of the entry point, too.
    expect(file.apps!.x).toMatchObject({ port: 80, build: { start_command: '/mine.sh nginx' } })
    expect(notes).toContain('refused container x health check')
    expect(notes).toContain('refused container x port 25/tcp')
    expect(notes).toContain('refused container x port 53/udp')
    expect(notes).toContain('changed container x label traefik.http.routers.x.rule')
  })
})

describe('a compose file of another system', () => {
  it('is told of as one of a folder is: what is left out, and which volumes hold its data', () => {
    const raw =
      'services: { web: { image: nginx, hostname: x, restart: always, volumes: ["data:/data"] } }\nvolumes: { data: {} }'
    const { notes } = outcome(fromCoolify({ services: [{ name: 's', uuid: 'u1', docker_compose_raw: raw }] }))
    expect(notes).toContain('docker run --rm -v u1_data:/from:ro')
    const dokploy = outcome(
      fromDokploy({ composeId: '1', name: 's', appName: 's-x1', sourceType: 'raw', composeFile: raw }),
    )
    expect(dokploy.notes).toContain('docker run --rm -v s-x1_data:/from:ro')
    const refused = outcome(
      fromCoolify({
        services: [
          { name: 's', docker_compose_raw: 'services: { web: { image: nginx, privileged: true } }' },
        ],
      }),
    )
    expect(refused.file.apps).toEqual({})
    expect(refused.notes).toContain('refused service s services.web.privileged')
  })
  it('names volumes as the engine does, which has the project before them', () => {
    const notesOf = (text: string, env?: string) =>
      outcome(fromCompose(text, 'my-shop', env, '/srv/My.Shop')).notes
    const service = 'services: { web: { image: nginx, volumes: ["data:/data"] } }\n'
    expect(notesOf(`${service}volumes: { data: {} }`)).toContain('-v myshop_data:/from:ro')
    expect(notesOf(`name: other\n${service}volumes: { data: {} }`)).toContain('-v other_data:/from:ro')
    expect(notesOf(`${service}volumes: { data: { name: plain } }`)).toContain('-v plain:/from:ro')
    expect(notesOf(`${service}volumes: { data: {} }`, 'COMPOSE_PROJECT_NAME=given')).toContain(
      '-v given_data:/from:ro',
    )
    // What was no volume with a name there is not copied from one, which the engine would make at
    // once.
    const others = notesOf('services: { web: { image: nginx, volumes: ["./data:/data", "/cache"] } }')
    expect(others).toMatch(/volume folder_data .*-v <path of that folder>:\/from:ro/)
    expect(others).toMatch(/volume web_cache .*-v <its id, which docker inspect tells>:\/from:ro/)
  })
})

describe('values and names that are hard to write', () => {
  it('are written so that apply reads them, lines in brackets and every quote among them', () => {
    const values = {
      A_TOKEN: 'first\n[b]\nlast',
      B_TOKEN: `a'b"c\`d`,
      C_TOKEN: 'a\r\n"b"\\',
      D_TOKEN: `'\n[b]\nE_TOKEN=evil\n'"`,
    }
    const envs = Object.entries(values).map(([key, value]) => ({ key, value }))
    const moved = fromCoolify([
      { name: 'a', git_repository: 'x/y', envs },
      { name: 'b', git_repository: 'x/y', envs: [{ key: 'E_TOKEN', value: 'good' }] },
    ])
    const written = writable(moved)
    const { notes } = outcome(written)
    const read = readSecrets(secretsText(written))
    for (const [name, value] of Object.entries(values)) {
      const found = read.of({ kind: 'variable', of: 'a', name, fields: {} })
      if (found === undefined) expect(notes).toContain(`refused a ${name} `)
      else expect(found).toBe(value)
    }
    expect(read.of({ kind: 'variable', of: 'b', name: 'E_TOKEN', fields: {} })).toBe('good')
  })
  it('of the .env beside a compose file are what compose reads there', () => {
    const text =
      'services: { web: { image: nginx, environment: { A_TOKEN: $A_TOKEN, B_TOKEN: $B_TOKEN, C_TOKEN: $C_TOKEN } } }'
    const env = `A_TOKEN="it's \\"x\\" \\\\ \\$1"\nB_TOKEN='a\\"b'\nC_TOKEN="one\\ntwo"\n`
    expect(fromCompose(text, 'shop', env, '/shop').secrets.shop).toEqual({
      A_TOKEN: `it's "x" \\ $1`,
      B_TOKEN: 'a\\"b',
      C_TOKEN: 'one\ntwo',
    })
  })
  it('of Coolify are taken as they are meant, not as it writes them for a shell', () => {
    const moved = fromCoolify([
      {
        name: 'a',
        git_repository: 'x/y',
        envs: [
          { key: 'A_TOKEN', value: 'it\'s "x"\\', real_value: 'it\\\'s \\"x\\"\\\\' },
          { key: 'B_TOKEN', value: 'a\nb', real_value: "'a\nb'", is_multiline: true },
          { key: 'C_TOKEN', value: '{{project.X}}', real_value: 'a\\"b' },
          { key: 'D_TOKEN', real_value: "'lit'", is_literal: true },
          { key: 'E', value: '{{team.Y}}' },
        ],
      },
    ])
    expect(moved.secrets.a).toEqual({
      A_TOKEN: 'it\'s "x"\\',
      B_TOKEN: 'a\nb',
      C_TOKEN: 'a"b',
      D_TOKEN: 'lit',
    })
    expect(outcome(moved).notes).toContain('refused application a E refers to {{team.Y}}')
  })
  it('leave the others alone: a database or volume that cannot be is told, and nothing else goes with it', () => {
    const { file, notes } = outcome(
      fromCoolify({
        applications: [{ name: 'a', git_repository: 'x/y' }],
        databases: [
          ...['db', 'db'].map((end) => ({ name: `${'x'.repeat(60)}-${end}`, type: 'postgres' })),
          { name: '1', type: 'redis', image: 'redis:99999999999999999999999999999999999999' },
        ],
      }),
    )
    expect(Object.keys(file.apps!)).toEqual(['a'])
    expect(Object.keys(file.databases!).length + notes.split('refused database').length - 1).toBe(3)
  })
  it.each(['nonsense', 'ssh://server'])('are said of an engine at %s, too', (address) => {
    expect(() => engineAt(address)).toThrow(`${address} is no address of an engine`)
  })
  it('of variables that would be lost are told', () => {
    const envs = [{ key: '__proto__', value: 'x' }]
    expect(outcome(fromCoolify([{ name: 'a', git_repository: 'x/y', envs }])).notes).toContain(
      'refused application a __proto__ is no name',
    )
  })
  it('of an app that is here already take nothing from it', () => {
    const change = (action: 'create' | 'update', name: string, field: string) =>
      ({ action, item: { kind: 'app', name, fields: {} }, fields: [{ field, from: 'a', to: 'b' }] }) as Change
    const changes = [
      change('update', 'theirs', 'git_url'),
      change('update', 'begun', 'port'),
      change('create', 'fresh', 'git_url'),
    ]
    expect([...clashesOf(changes).keys()]).toEqual([changes[0]])
  })
})
