import { describe, expect, it } from 'vitest'
import { ComposeError, parseCompose, type ComposeOptions } from '#server/compose/parse'
import { invalidCompose } from '#server/compose/refusal'

const issuesOf = (text: string, options: ComposeOptions = {}) => {
  try {
    parseCompose(text, options)
  } catch (error) {
    if (error instanceof ComposeError) return error.issues
    throw error
  }
  return []
}
const one = (lines: string, options: ComposeOptions = {}) => {
  const body = lines
    .trim()
    .split('\n')
    .map((line) => `    ${line}`)
    .join('\n')
  return parseCompose(`services:\n  web:\n    image: nginx:1\n${body}\n`, options).services[0]!
}
const refusedPaths = (lines: string, more = '') => {
  const body = lines
    .trim()
    .split('\n')
    .map((line) => `    ${line}`)
    .join('\n')
  return issuesOf(`services:\n  web:\n    image: nginx:1\n${body}\n${more}`).map(({ path }) => path)
}
const repository = (texts: Record<string, string>) => ({
  files: () => Object.keys(texts).sort(),
  read: (path: string) => texts[path],
})

it('a key that stands twice in a mapping is refused with its line: only the last would count', () => {
  const text = 'services:\n  web:\n    image: nginx:1\n    ports: ["80"]\n    image: nginx:2\n'
  expect(issuesOf(text)).toEqual([
    { path: '', message: 'The file names «image» twice in one mapping (line 5).' },
  ])
  const apart = 'services:\n  web: {image: nginx:1}\n  api: {image: nginx:1}\n'
  expect(issuesOf(apart)).toEqual([])
})

describe('a service', () => {
  it('has its defaults where the file says nothing', () => {
    expect(parseCompose('services: {web: {image: "nginx:1.29"}}').services).toEqual([
      {
        name: 'web',
        image: 'nginx:1.29',
        build: null,
        entrypoint: null,
        command: null,
        environment: {},
        user: null,
        working_dir: null,
        read_only: false,
        mounts: [],
        ports: [],
        public_port: null,
        health_path: null,
        aliases: [],
        depends_on: [],
        health_check: 'image',
        replicas: 1,
        limits: {},
        stop_grace_s: 10,
        one_off: false,
      },
    ])
  })

  it('splits a command as a shell would and gives it to no shell', () => {
    expect(one(`command: node 'my app.js' --name="a b" $$HOME \\;`).command).toEqual([
      'node',
      'my app.js',
      '--name=a b',
      '$HOME',
      ';',
    ])
    expect(one('command: ["a", "b c"]\nentrypoint: sh -c').entrypoint).toEqual(['sh', '-c'])
    expect(refusedPaths(`command: "echo 'open"`)).toEqual(['services.web.command'])
  })

  it('takes variables as a mapping and as a list, and those without a value from the app', () => {
    const variables = { GIVEN: 'yes' }
    expect(one('environment:\n  A: 1\n  B: true\n  GIVEN:\n  ABSENT:', { variables }).environment).toEqual({
      A: '1',
      B: 'true',
      GIVEN: 'yes',
    })
    expect(one('environment:\n  - A=x=y\n  - GIVEN\n  - ABSENT', { variables }).environment).toEqual({
      A: 'x=y',
      GIVEN: 'yes',
    })
  })

  it('asks for what stands by its name alone, so that the platform can make it up', () => {
    const text = `
services: { web: { image: a, environment: [SERVICE_PASSWORD_WEB, "GIVEN=1"], secrets: [key] } }
secrets: { key: { environment: SERVICE_HEX_KEY } }
`
    const asked = parseCompose(text).variables.map(({ name, required }) => [name, required])
    expect(asked).toEqual([
      ['SERVICE_HEX_KEY', true],
      ['SERVICE_PASSWORD_WEB', false],
    ])
  })

  it('reads files of variables below those of environment', () => {
    const files = repository({ 'a.env': 'A=1\nB="two words"', 'b.env': 'B=3' })
    const found = one(
      'env_file:\n  - a.env\n  - path: ./b.env\n  - path: c.env\n    required: false\nenvironment:\n  A: own',
      { files },
    )
    expect(found.environment).toEqual({ A: 'own', B: '3' })
    // A file that may be missing is missing: nothing of the app stands in for it.
    expect(
      one('env_file: {path: .env, required: false}', { files, variables: { TOKEN: 't' } }).environment,
    ).toEqual({})
    expect(issuesOf('services: {web: {image: a, env_file: [../x.env]}}', { files })[0]?.path).toBe(
      'services.web.env_file.0',
    )
    expect(issuesOf('services: {web: {image: a, env_file: x.txt}}')[0]?.path).toBe('services.web.env_file')
  })

  it.each(['.env', './api.env', 'config/.env.production'])(
    'has the app’s variables in place of %s, which repositories leave out',
    (name) => {
      const variables = { TOKEN: 't', A: '1', SERVICE_PASSWORD_DB: 'of the database', COMPOSE_PROFILES: 'x' }
      const options = { files: repository({ 'compose.yaml': '' }), variables }
      expect(one(`env_file: ${name}\nenvironment: {A: own}`, options).environment).toEqual({
        TOKEN: 't',
        A: 'own',
      })
      const plan = parseCompose(`services: {web: {image: a, env_file: [${name}]}}`, options)
      expect(plan.ignored.map(({ path }) => path)).toContain('services.web.env_file.0')
    },
  )

  it('has nothing of .env beside the compose file in place of another file that is missing', () => {
    const files = repository({ '.env': 'TAG=1' })
    expect(one('env_file: api.env', { files, variables: { TOKEN: 't' } }).environment).toEqual({ TOKEN: 't' })
  })

  it('reads .env beside the compose file as the app has changed it, and other files as they are', () => {
    const files = repository({ 'a/.env': 'URL=local\nTAG=1', 'a/other.env': 'URL=other' })
    const options = { files, directory: 'a', variables: { URL: 'https://db', MORE: 'x' } }
    expect(one('env_file: .env', options).environment).toEqual({ URL: 'https://db', TAG: '1' })
    expect(one('env_file: other.env', options).environment).toEqual({ URL: 'other' })
  })

  it('reads values of its files as Compose does: with variables, and with a # that no space is before', () => {
    const files = repository({
      'db.env': `USER=shop
URL=postgres://\${USER}:$PASSWORD@db/\${NAME:-main}
SAME="\${USER}"
LITERAL='\${USER}'
HASH=$2y$10$abc
KEY=a#b
NOTE=a # comment`,
    })
    expect(
      one('env_file: db.env', { files, variables: { PASSWORD: 'p', USER: 'other' } }).environment,
    ).toEqual({
      USER: 'shop',
      URL: 'postgres://shop:p@db/main',
      SAME: 'shop',
      LITERAL: '${USER}',
      HASH: '$2y$10$abc',
      KEY: 'a#b',
      NOTE: 'a',
    })
  })

  it('puts what the app changed of .env into the values that name it', () => {
    const files = repository({ '.env': 'BASE=./data\nDATA=${BASE}/db\nTAG=1' })
    const options = { files, variables: { BASE: './kept' }, strict: true }
    const { mounts, image } = one('volumes: ["${DATA}:/data"]\nenv_file: .env', options)
    expect([image, mounts]).toEqual(['nginx:1', [expect.objectContaining({ volume: 'folder_kept_db' })]])
  })

  it('refuses a file whose values name one another until they are too long', () => {
    const lines = Array.from({ length: 40 }, (_, at) => `A${at + 1}=$A${at}$A${at}`)
    const files = repository({ 'a.env': `A0=xxxxxxxxxx\n${lines.join('\n')}` })
    expect(issuesOf('services: {web: {image: a, env_file: a.env}}', { files })[0]?.path).toBe(
      'services.web.env_file',
    )
  })

  it('has limits and replicas, of which deploy goes first', () => {
    expect(one('cpus: "0.5"\nmem_limit: 512m\npids_limit: -1').limits).toEqual({
      cpus: 0.5,
      memory_bytes: 512 * 1024 * 1024,
    })
    const deployed = one(
      'mem_limit: 1g\nscale: 2\ndeploy:\n  replicas: 3\n  resources:\n    limits: {cpus: "1.5", memory: 64M, pids: 50}',
    )
    expect(deployed).toMatchObject({
      replicas: 3,
      limits: { cpus: 1.5, memory_bytes: 64 * 1024 ** 2, pids: 50 },
    })
    // A server has room for some ten thousand threads in all.
    for (const much of ['pids_limit: 1000000', 'deploy: {resources: {limits: {pids: 4097}}}'])
      expect(one(much).limits.pids).toBe(4096)
    expect(refusedPaths('mem_limit: 1k')).toEqual(['services.web.deploy.resources.limits'])
    expect(refusedPaths('deploy: {replicas: 1000}')).toEqual(['services.web.deploy.replicas'])
  })

  it('never has so few cores that the engine rounds them to no limit at all', () => {
    for (const few of ['1e-6', '0.000001', '0.0000000001', '0.009']) {
      expect(refusedPaths(`cpus: ${few}`), few).toEqual(['services.web.deploy.resources.limits'])
      const deployed = `deploy: {resources: {limits: {cpus: ${few}}}}`
      expect(refusedPaths(deployed), few).toEqual(['services.web.deploy.resources.limits'])
    }
    expect(one('cpus: 0.01').limits).toEqual({ cpus: 0.01 })
    // Zero is the file's word for none of its own: then it has that of the app.
    expect(one('cpus: 0').limits).toEqual({})
  })

  it('has a health check in every form', () => {
    expect(
      one('healthcheck:\n  test: ["CMD", "curl", "-f", "http://localhost"]\n  interval: 1m30s\n  retries: 5')
        .health_check,
    ).toEqual({
      command: ['curl', '-f', 'http://localhost'],
      interval_ms: 90_000,
      timeout_ms: 30_000,
      retries: 5,
      start_period_ms: 0,
    })
    expect(one('healthcheck: {test: "pg_isready || exit 1", start_period: 20s}').health_check).toMatchObject({
      command: ['/bin/sh', '-c', 'pg_isready || exit 1'],
      start_period_ms: 20_000,
    })
    expect(one('healthcheck: {test: ["NONE"]}').health_check).toBe('none')
    expect(one('healthcheck: {disable: true}').health_check).toBe('none')
    expect(refusedPaths('healthcheck: {test: ["curl"]}')).toEqual(['services.web.healthcheck.test'])
    expect(refusedPaths('healthcheck: {test: a, interval: soon}')).toEqual([
      'services.web.healthcheck.interval',
    ])
  })

  it('is named by its networks, links, container and host', () => {
    const plan = parseCompose(`
services:
  web:
    image: a
    container_name: my_web
    hostname: www
    networks: {back: {aliases: [api, web]}}
    links: ["db:database"]
  db: {image: b, networks: [back, default]}
networks: {back: }
`)
    expect(Object.fromEntries(plan.services.map(({ name, aliases }) => [name, aliases]))).toEqual({
      web: ['my_web', 'www', 'api'],
      db: ['database'],
    })
    expect(refusedPaths('networks: [nowhere]')).toEqual(['services.web.networks'])
  })
})

describe('ports', () => {
  it.each([
    ['"8080:80"', 80],
    ['80', 80],
    ['"3000-3002"', 3000],
    ['"9090-9091:8080-8081"', 8080],
    ['"0.0.0.0:8080:80/tcp"', 80],
    ['"[::]:8080:80"', 80],
    ['"127.0.0.1::8080"', null],
    ['"127.0.0.1:8080:80"', null],
    ['"[::1]:8080:80"', null],
    ['"::1:8080:80"', null],
    ['"2001:db8::7:8080:80"', 80],
    ['"5432:5432"', null],
    ['"53:53/udp"', null],
    ['{target: 8080, published: "80", protocol: tcp}', 8080],
    ['{target: 8080, host_ip: 127.0.0.1}', null],
    ['"10.8.0.1:8080:80"', null],
    ['"192.168.1.5:8080:80"', null],
    ['"100.64.0.7:8080:80"', null],
    ['"[fd00::7]:8080:80"', null],
    ['{target: 8080, host_ip: 172.16.0.1}', null],
    ['"198.41.0.4:8080:80"', 80],
  ])('of %s make %s public', (port, expected) => {
    expect(one(`ports: [${port}]`).public_port).toBe(expected)
  })

  it('are public or private as x-portreeve says', () => {
    expect(one('ports: ["80:80"]\nx-portreeve: {public: false}').public_port).toBeNull()
    expect(one('expose: ["8080"]\nx-portreeve: {public: true, health_path: /up}')).toMatchObject({
      public_port: 8080,
      health_path: '/up',
    })
    expect(one('x-portreeve: {public: 9000}').public_port).toBe(9000)
    expect(refusedPaths('x-portreeve: {pubic: 9000}')).toEqual(['services.web.x-portreeve.pubic'])
  })

  it.each(['"a:b"', '"a:b:80:80"', '"0"', '"70000"', '"1-60000"', '{published: 80}'])('refuse %s', (port) => {
    expect(refusedPaths(`ports: [${port}]`)[0]).toMatch(/^services\.web\.ports\.0/)
  })
})

describe('mounts', () => {
  it('are named volumes, unnamed ones and folders in memory', () => {
    const plan = parseCompose(`
services:
  db:
    image: a
    tmpfs: /run:size=64m
    volumes:
      - data:/var/lib/data:ro
      - /cache
      - {type: volume, source: data, target: /again}
      - {type: tmpfs, target: /scratch, tmpfs: {size: 1m}}
volumes: {data: }
`)
    expect(plan.services[0]?.mounts).toEqual([
      { kind: 'volume', volume: 'data', path: '/var/lib/data', read_only: true },
      { kind: 'volume', volume: 'db_cache', path: '/cache', read_only: false },
      { kind: 'volume', volume: 'data', path: '/again', read_only: false },
      { kind: 'tmpfs', path: '/scratch', size_bytes: 1024 ** 2 },
      { kind: 'tmpfs', path: '/run', size_bytes: 64 * 1024 ** 2 },
    ])
    expect(plan.volumes).toEqual(['data', 'db_cache'])
  })

  it('leave out the clock of the host, and say so', () => {
    const text =
      'services: {web: {image: a, volumes: ["/etc/localtime:/etc/localtime:ro", "/etc/timezone:/etc/timezone"]}}'
    const plan = parseCompose(text)
    expect(plan.services[0]?.mounts).toEqual([])
    expect(plan.ignored.map(({ path }) => path)).toEqual(['services.web.volumes.0', 'services.web.volumes.1'])
    expect(refusedPaths('volumes: ["/etc/localtime/../passwd:/x"]')).toEqual(['services.web.volumes.0'])
  })

  it('keep a folder called like conf.d, which the repository does not hold, as a volume', () => {
    const { mounts } = one('volumes: ["./etc/dnsmasq.d:/etc/dnsmasq.d"]', {
      files: repository({ 'compose.yaml': '' }),
    })
    expect(mounts).toMatchObject([{ kind: 'volume', path: '/etc/dnsmasq.d' }])
  })

  it('copy files and folders of the repository', () => {
    const files = repository({
      'deploy/nginx.conf': 'server {}',
      'deploy/init/1.sql': 'x',
      'deploy/init/2.sh': '#!/bin/sh',
    })
    const found = one('volumes: ["./nginx.conf:/etc/nginx/nginx.conf:ro", "./init:/init/"]', {
      files,
      directory: 'deploy',
    })
    expect(found.mounts).toEqual([
      { kind: 'file', path: '/etc/nginx/nginx.conf', content: 'server {}', mode: 0o644 },
      { kind: 'file', path: '/init/1.sql', content: 'x', mode: 0o644 },
      { kind: 'file', path: '/init/2.sh', content: '#!/bin/sh', mode: 0o755 },
    ])
  })

  it.each([
    '/var/run/docker.sock:/var/run/docker.sock',
    '/:/host',
    '/etc/passwd:/x:ro',
    '~/data:/data',
    '../up:/data',
    './missing.conf:/etc/x.conf',
    '${PWD}/../up:/data',
    './../../up:/data',
    'unknown:/data',
  ])('refuse %s', (mount) => {
    const files = repository({ 'a/compose.yaml': '' })
    const text = `services: {web: {image: a, volumes: ["${mount}"]}}`
    expect(issuesOf(text, { files }).map(({ path }) => path)).toEqual(['services.web.volumes.0'])
  })

  it('keep folders that the service writes as volumes, one for each folder', () => {
    const text = `
services:
  db: { image: a, volumes: ["./data/db:/var/lib/db", "\${PWD}/data/db:/same:ro"] }
  other: { image: a, volumes: [{ type: bind, source: ./data/db, target: /seen }, ".cache:/c"] }
`
    for (const files of [repository({ 'compose.yaml': '' }), undefined]) {
      const plan = parseCompose(text, files ? { files } : {})
      expect(plan.services.flatMap(({ mounts }) => mounts)).toMatchObject([
        { kind: 'volume', volume: 'folder_data_db', path: '/var/lib/db', read_only: false },
        { kind: 'volume', volume: 'folder_data_db', path: '/same', read_only: true },
        { kind: 'volume', volume: 'folder_data_db', path: '/seen' },
        { kind: 'volume', volume: 'folder__cache', path: '/c' },
      ])
      expect(plan.volumes).toEqual(['folder__cache', 'folder_data_db'])
      expect(plan.taken.map(({ text: told }) => told).join()).toContain('kept as the volume folder_data_db')
    }
  })

  it('keep data that are there where the repository has files in the folder later, and say so', () => {
    const files = repository({ 'compose.yaml': '', 'data/seed.txt': 'new', 'conf/app.conf': 'x' })
    const text = `services: { db: { image: a, volumes: ["./data:/data", "./conf:/conf"] } }`
    const kept = parseCompose(text, { files, holdsData: (volume) => volume === 'folder_data' })
    expect(kept.services[0]!.mounts).toMatchObject([
      { kind: 'volume', volume: 'folder_data', path: '/data' },
      { kind: 'file', path: '/conf/app.conf' },
    ])
    expect(kept.surprising).toEqual([
      { path: 'services.db.volumes.0', text: expect.stringContaining('holds what the service wrote') },
    ])
    const fresh = parseCompose(text, { files })
    expect(fresh.services[0]!.mounts[0]).toMatchObject({ kind: 'file', path: '/data/seed.txt' })
  })

  it.each(['profile', 'app.conf'])('keep data of a folder that is called like a file: %s', (name) => {
    const files = repository({ 'compose.yaml': '' })
    const text = `services: { db: { image: a, volumes: ["./${name}:/data"] } }`
    const kept = parseCompose(text, { files, holdsData: () => true })
    expect(kept.services[0]!.mounts).toMatchObject([{ kind: 'volume', path: '/data' }])
  })

  it.each([
    './Caddyfile:/etc/caddy/Caddyfile',
    './deploy/Corefile:/Corefile:ro',
    './settings:/etc/app/app.conf',
    './etc/hosts:/etc/hosts',
    './.htpasswd:/etc/nginx/.htpasswd',
    './keys/id_ed25519:/root/.ssh/id_ed25519',
  ])('take no missing file for a folder to be written: %s', (mount) => {
    const files = repository({ 'compose.yaml': '' })
    const text = `services: {web: {image: a, volumes: ["${mount}"]}}`
    expect(issuesOf(text, { files })).toMatchObject([
      {
        path: 'services.web.volumes.0',
        message: expect.stringContaining('names nothing in the repository'),
      },
    ])
  })

  it('keep two folders apart whose paths are written alike', () => {
    const folders = [
      './data/db',
      './data_db',
      './data__db',
      './.cache',
      './_cache',
      './cache',
      './a-b',
      './a/b',
    ]
    const plan = parseCompose(
      JSON.stringify({
        services: { db: { image: 'a', volumes: folders.map((from, at) => `${from}:/${at}`) } },
      }),
    )
    expect(new Set(plan.volumes).size).toBe(folders.length)
    for (const volume of plan.volumes) expect(volume).toMatch(/^folder_[A-Za-z0-9_-]+$/)
  })

  it('keep a folder of which the repository holds only what makes Git keep it as a volume', () => {
    const files = repository({
      'compose.yaml': '',
      'data/.gitkeep': '',
      'data.d/db/.gitignore': '*',
      'conf/.gitignore': 'x',
      'conf/app.conf': 'y',
      '.gitignore': 'z',
    })
    const { mounts } = one(
      'volumes: ["./data:/data", "./data.d:/d", "./conf:/conf", "./.gitignore:/etc/ignored"]',
      { files },
    )
    expect(mounts).toMatchObject([
      { kind: 'volume', volume: 'folder_data', path: '/data' },
      { kind: 'volume', path: '/d' },
      { kind: 'file', path: '/conf/.gitignore' },
      { kind: 'file', path: '/conf/app.conf' },
      { kind: 'file', path: '/etc/ignored', content: 'z' },
    ])
  })

  it('of sources that are too many to copy are left out where the image is built from them, and told', () => {
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`api/src/${n}.js`, 'x']))
    const files = repository({ 'compose.yaml': '', 'api/Dockerfile': 'FROM a', ...many })
    const plan = parseCompose(
      'services: {api: {build: ./api, volumes: ["./api:/app", "./api/src:/app/src", "/app/node_modules"]}}',
      { files },
    )
    expect(plan.services[0]?.mounts).toEqual([
      { kind: 'volume', volume: 'api_app_node_modules', path: '/app/node_modules', read_only: false },
    ])
    expect(plan.ignored.map(({ path }) => path)).toEqual(['services.api.volumes.0', 'services.api.volumes.1'])
    expect(issuesOf('services: {api: {image: a, volumes: ["./api:/app"]}}', { files })).toHaveLength(1)
  })

  it('refuse host paths in the long form, other types and drivers of volumes', () => {
    expect(refusedPaths('volumes: [{type: bind, source: /etc, target: /x}]')).toEqual([
      'services.web.volumes.0',
    ])
    expect(refusedPaths('volumes: [{type: npipe, source: a, target: /x}]')).toEqual([
      'services.web.volumes.0',
    ])
    expect(refusedPaths('volumes: [{type: volume, source: /etc, target: /x}]')).toEqual([
      'services.web.volumes.0',
    ])
    const options = 'volumes: {data: {driver_opts: {type: none, o: bind, device: /}}}'
    expect(refusedPaths('volumes: ["data:/x"]', options)).toEqual(['volumes.data.driver_opts'])
    expect(refusedPaths('volumes: ["data:/x"]', 'volumes: {data: {external: true}}')).toEqual([
      'volumes.data.external',
    ])
    expect(refusedPaths('volumes: ["data:x"]', 'volumes: {data: }')).toEqual(['services.web.volumes'])
  })

  it.each([
    '/proc',
    '/proc/sys/kernel',
    '/var/../proc/1',
    '/sys/fs/cgroup',
    '/dev',
    '/dev//sda',
    '/etc/resolv.conf',
  ])('refuse %s, which the engine fills itself, for volumes and in memory', (target) => {
    expect(refusedPaths(`volumes: ["data:${target}"]`, 'volumes: {data: }')).toEqual(['services.web.volumes'])
    expect(refusedPaths(`tmpfs: ["${target}"]`)).toEqual(['services.web.tmpfs'])
  })
  it.each(['/dev/shm', '/run', '/var/run', '/etc/nginx', '/processes'])('take %s in memory', (target) => {
    expect(refusedPaths(`tmpfs: ["${target}"]`)).toEqual([])
  })

  it('leave files that are put there before the start to be seen, and say so', () => {
    const text = `
services:
  web:
    image: a
    read_only: true
    tmpfs: [/run/, /tmp]
    secrets: [token]
  api: { image: a, read_only: true, tmpfs: /run, volumes: ["data:/data"] }
  job: { image: a, read_only: true, volumes: ["data:/data"], configs: [{ source: page, target: /data/page }] }
volumes: { data: }
configs: { page: { content: text } }
secrets: { token: { environment: TOKEN } }`
    const { services, ignored } = parseCompose(text, { variables: { TOKEN: 't' }, strict: true })
    const kinds = Object.fromEntries(
      services.map(({ name, mounts, read_only }) => [
        name,
        [read_only, mounts.map(({ kind, path }) => `${kind} ${path}`)],
      ]),
    )
    expect(kinds).toEqual({
      web: [false, ['tmpfs /tmp', 'file /run/secrets/token']],
      api: [true, ['volume /data', 'tmpfs /run']],
      job: [true, ['volume /data', 'file /data/page']],
    })
    expect(ignored.map(({ path }) => path)).toEqual(['services.web.tmpfs', 'services.web.read_only'])
  })

  it('put configs and secrets where the file says', () => {
    const text = `
services:
  web:
    image: a
    configs: [plain, {source: plain, target: /etc/app.conf, mode: 0440}]
    secrets: [token, {source: key, target: deploy_key, mode: 0o400}]
configs: {plain: {content: "host=\${HOST}"}}
secrets: {token: {environment: TOKEN}, key: {file: ./key.txt}}
`
    const files = repository({ 'key.txt': 'k' })
    const plan = parseCompose(text, { files, variables: { HOST: 'h', TOKEN: 't' } })
    expect(plan.services[0]?.mounts).toEqual([
      { kind: 'file', path: '/plain', content: 'host=h', mode: 0o444 },
      { kind: 'file', path: '/etc/app.conf', content: 'host=h', mode: 0o440 },
      { kind: 'file', path: '/run/secrets/token', content: 't', mode: 0o444 },
      { kind: 'file', path: '/run/secrets/deploy_key', content: 'k', mode: 0o400 },
    ])
    expect(issuesOf(text, { files, strict: true, variables: { HOST: 'h' } }).map(({ path }) => path)).toEqual(
      ['secrets.token.environment'],
    )
  })
})

describe('dependencies and profiles', () => {
  it('put each service after those that it depends on', () => {
    const plan = parseCompose(`
services:
  web: {image: a, depends_on: {api: {condition: service_healthy}, migrate: {condition: service_completed_successfully}}}
  api: {image: a, depends_on: [db]}
  migrate: {image: a, depends_on: [db]}
  db: {image: b}
`)
    expect(plan.services.map(({ name }) => name)).toEqual(['db', 'api', 'migrate', 'web'])
    expect(plan.services.filter(({ one_off }) => one_off).map(({ name }) => name)).toEqual(['migrate'])
  })

  it('refuse a circle and a service that is not there, unless it may be missing', () => {
    expect(
      issuesOf('services: {a: {image: x, depends_on: [b]}, b: {image: x, depends_on: [a]}}')[0]?.path,
    ).toBe('services.a.depends_on')
    expect(refusedPaths('depends_on: [db]')).toEqual(['services.web.depends_on'])
    expect(one('depends_on: {db: {condition: service_started, required: false}}').depends_on).toEqual([])
    expect(refusedPaths('depends_on: {db: {condition: service_ready}}')).toContain(
      'services.web.depends_on.db.condition',
    )
  })

  it('leave out services of profiles that are not active', () => {
    const text = 'services: {web: {image: a}, debug: {image: b, profiles: [tools, dev]}}'
    expect(parseCompose(text).left_out).toEqual(['debug'])
    const chosen = parseCompose(text, { variables: { COMPOSE_PROFILES: 'other,dev' } })
    expect(chosen.services.map(({ name }) => name)).toEqual(['web', 'debug'])
  })

  it('have what is not started again run to its end, unless it answers requests or is all there is', () => {
    const ending = (text: string) =>
      parseCompose(`services: {${text}}`).services.flatMap(({ name, one_off }) => (one_off ? [name] : []))
    expect(ending('web: {image: a}, init: {image: b, restart: "no"}, fill: {image: b, restart: no}')).toEqual(
      ['init', 'fill'],
    )
    expect(ending('web: {image: a}, api: {image: b, restart: "no", expose: ["80"]}')).toEqual([])
    expect(ending('web: {image: a}, api: {image: b, restart: "no", healthcheck: {test: "true"}}')).toEqual([])
    expect(ending('web: {image: a}, api: {image: b, restart: on-failure}, db: {image: c}')).toEqual([])
    expect(ending('job: {image: a, restart: "no"}')).toEqual([])
  })

  it('check services that are left out as well', () => {
    expect(
      issuesOf('services: {a: {image: x}, b: {image: x, profiles: [p], privileged: true}}')[0]?.path,
    ).toBe('services.b.privileged')
  })
})

describe('a build', () => {
  it('is a folder, or a mapping', () => {
    const files = repository({ 'deploy/compose.yaml': '', 'api/Dockerfile': 'FROM a' })
    const options = { files, directory: 'deploy', variables: { VERSION: '7' } }
    expect(parseCompose('services: {api: {build: ../api}}', options).services[0]?.build).toEqual({
      context: 'api',
      dockerfile: null,
      inline: null,
      args: {},
      target: null,
    })
    const text =
      'services: {api: {build: {context: .., dockerfile: api/Dockerfile, target: run, args: [VERSION, A=1, NONE]}}}'
    expect(parseCompose(text, options).services[0]?.build).toEqual({
      context: '.',
      dockerfile: 'api/Dockerfile',
      inline: null,
      args: { VERSION: '7', A: '1' },
      target: 'run',
    })
  })

  it('is shared by the services that run its image by name', () => {
    const files = repository({ 'compose.yaml': '', 'api/Dockerfile': 'FROM a' })
    const { services } = parseCompose(
      'services: {api: {build: api, image: "shop:dev"}, worker: {image: "shop:dev"}, db: {image: "db:1"}}',
      { files },
    )
    const folders = Object.fromEntries(services.map(({ name, build }) => [name, build?.context]))
    expect(folders).toEqual({ api: 'api', worker: 'api', db: undefined })
  })

  it('stays in the repository', () => {
    const files = repository({ 'compose.yaml': '' })
    for (const build of [
      '..',
      '/etc',
      'https://example.com/a.git',
      '{context: ., dockerfile: ../../Dockerfile}',
    ])
      expect(issuesOf(`services: {api: {build: ${build}}}`, { files }), build).toHaveLength(1)
    expect(issuesOf('services: {api: {build: .}}')[0]?.path).toBe('services.api.build')
    expect(issuesOf('services: {api: {build: {dockerfile_inline: "FROM a"}}}')).toEqual([])
  })

  it.each([
    'privileged: true',
    'network: host',
    'entitlements: [security.insecure]',
    'ssh: [default]',
    'extra_hosts: ["a:host-gateway"]',
  ])('refuses %s', (line) => {
    const files = repository({ 'compose.yaml': '' })
    const [key] = line.split(':')
    expect(issuesOf(`services: {api: {build: {context: ., ${line}}}}`, { files })[0]?.path).toBe(
      `services.api.build.${key}`,
    )
  })
})

describe('what is made of variables alone', () => {
  const text = 'services: {web: {image: "${IMAGE}", ports: ["${PORT}:${PORT}"], volumes: ["${PLACE}:/data"]}}'
  it('is planned before they are set, and must be set for a deployment', () => {
    expect(parseCompose(text).services[0]).toMatchObject({
      image: '',
      ports: [],
      public_port: null,
      mounts: [],
    })
    expect(issuesOf(text, { strict: true }).map(({ path }) => path)).toEqual([
      'services.web.volumes.0',
      'services.web.ports.0',
      'services.web.image',
    ])
    const variables = { IMAGE: 'a:1', PORT: '8080', PLACE: './data' }
    expect(parseCompose(text, { strict: true, variables }).services[0]).toMatchObject({
      image: 'a:1',
      public_port: 8080,
      mounts: [{ kind: 'volume', volume: 'folder_data', path: '/data' }],
    })
  })
})

describe('what is wrong only because variables are not set', () => {
  const text = `
services:
  web:
    image: nginx:1
    user: "\${UID}:\${GID}"
    container_name: \${STACK}_web
    volumes: ["\${DATA}/db:/data", { type: bind, source: "\${DATA}/log", target: /log }]
    tmpfs: ["\${SCRATCH}"]
`
  const variables = { UID: '1000', GID: '1000', STACK: 'shop', DATA: './data', SCRATCH: '/scratch' }
  it('is not told of a plan: the variables of an app are set once there is one', () => {
    expect(issuesOf(text)).toEqual([])
  })
  it('is told of a deployment, with the variables', () => {
    const told = Object.fromEntries(
      issuesOf(text, { strict: true }).map(({ path, message }) => [path, message]),
    )
    expect(told['services.web.user']).toBe(
      'must be a user, or a user and a group. Variables that are not set: GID, UID.',
    )
    expect(told['services.web.container_name']).toContain('Variables that are not set: STACK.')
    expect(told['services.web.volumes.0']).toContain('Variables that are not set: DATA.')
    expect(told['services.web.volumes.1']).toContain('Variables that are not set: DATA.')
    expect(told['services.web.tmpfs']).toContain('Variables that are not set: SCRATCH.')
  })
  it('is taken once they are', () => {
    const files = repository({})
    expect(issuesOf(text, { strict: true, variables, files })).toEqual([])
  })
  it('does not hide what is wrong of values without variables', () => {
    expect(issuesOf(text.replace('/scratch', '').replace('"${SCRATCH}"', 'scratch'))).toEqual([
      { path: 'services.web.tmpfs', message: 'must name an absolute path in the container.' },
    ])
  })
  it('is nothing where Compose takes an empty text for none', () => {
    const service = one(
      'user: "${U:-}"\nworking_dir: "${W:-}"\nhostname: "${H:-}"\ncontainer_name: "${C:-}"',
      {
        strict: true,
      },
    )
    expect(service).toMatchObject({ user: null, working_dir: null, aliases: [] })
  })
})

it('the name of the project is that of the app, unless the app sets another, and is not asked for', () => {
  const text = 'services: {web: {image: nginx:1, container_name: "${COMPOSE_PROJECT_NAME}-web"}}'
  const { services, variables } = parseCompose(text, { name: 'shop', strict: true })
  expect(services[0]!.aliases).toEqual(['shop-web'])
  expect(variables).toEqual([])
  const set = { variables: { COMPOSE_PROJECT_NAME: 'other' }, name: 'shop' }
  expect(parseCompose(text, set).services[0]!.aliases).toEqual(['other-web'])
})

describe('variables', () => {
  const value = (text: string, variables: Record<string, string> = {}, strict = true) =>
    parseCompose(`services: {web: {image: a, environment: {X: "${text}"}}}`, { variables, strict })
      .services[0]!.environment.X
  it.each([
    ['$A', 'a'],
    ['${A}', 'a'],
    ['$A.$E-', 'a.-'],
    ['${E}', ''],
    ['${NONE}', ''],
    ['${NONE-d}', 'd'],
    ['${E-d}', ''],
    ['${E:-d}', 'd'],
    ['${A:-d}', 'a'],
    ['${A:?needed}', 'a'],
    ['${E?needed}', ''],
    ['${A+r}', 'r'],
    ['${E+r}', 'r'],
    ['${E:+r}', ''],
    ['${NONE+r}', ''],
    ['${NONE:-${A}}', 'a'],
    ['${NONE:-${NONE:-deep}}', 'deep'],
    ['${A:+${A}-x}', 'a-x'],
    ['$$A', '$A'],
    ['$${A}', '${A}'],
    ['${NONE:-a:b/c?d}', 'a:b/c?d'],
    ['${A}${A}', 'aa'],
  ])('in %s give %s', (text, expected) => {
    expect(value(text, { A: 'a', E: '' })).toBe(expected)
  })

  it.each(['${A', '${}', '$', '${A!x}', '${1}', 'a $ b', '${A:}'])('in %s are refused', (text) => {
    expect(() => value(text, { A: 'a' })).toThrow(ComposeError)
  })

  it('that the file cannot do without are named where they are missing, and listed in a dry run', () => {
    const text = 'services: {web: {image: "a:${TAG:?set it}", environment: {U: "${USER_NAME:-admin}"}}}'
    expect(issuesOf(text, { strict: true }).map(({ path }) => path)).toEqual(['services.web.image'])
    expect(parseCompose(text).variables).toEqual([
      { name: 'TAG', default: null, required: true, paths: ['services.web.image'] },
      { name: 'USER_NAME', default: 'admin', required: false, paths: ['services.web.environment.U'] },
    ])
  })

  it('come from .env beside the file, and never from the process', () => {
    const files = repository({ 'deploy/.env': 'A=file\nB=file' })
    const text = 'services: {web: {image: "x:$A-$B-$PATH"}}'
    expect(
      parseCompose(text, { files, directory: 'deploy', variables: { A: 'app' } }).services[0]?.image,
    ).toBe('x:app-file-')
  })

  it('of names that every object has are not set', () => {
    expect(value('${constructor:-d}${__proto__:-d}${toString}')).toBe('dd')
  })
})

describe('what is not taken', () => {
  it.each([
    'privileged: true',
    'cap_add: [SYS_ADMIN]',
    'security_opt: ["seccomp:unconfined"]',
    'devices: ["/dev/sda"]',
    'device_cgroup_rules: ["c 1:3 mr"]',
    'gpus: all',
    'network_mode: host',
    'network_mode: "container:x"',
    'pid: host',
    'ipc: host',
    'uts: host',
    'userns_mode: host',
    'cgroup: host',
    'cgroup_parent: /x',
    'volumes_from: [db]',
    'extra_hosts: ["host.docker.internal:host-gateway"]',
    'group_add: [docker]',
    'sysctls: {net.core.somaxconn: 1}',
    'runtime: nvidia',
    'oom_score_adj: -1000',
    'use_api_socket: true',
    'extends: {service: a}',
    'provider: {type: x}',
    'post_start: [{command: a, privileged: true}]',
    'privilegd: false',
  ])('refuses %s with its path', (line) => {
    expect(refusedPaths(line)).toEqual([`services.web.${line.split(':')[0]}`])
  })

  it.each(['sysctls: {}', 'cap_add: []', 'devices: {}', 'privileged: false', 'extra_hosts: {}'])(
    'ignores %s, which asks for nothing',
    (line) => expect(refusedPaths(line)).toEqual([]),
  )

  it('is a capability that containers do not have; those that all have are given anyway', () => {
    expect(refusedPaths('cap_drop: [ALL]\ncap_add: [CHOWN, SETGID, CAP_SETUID, net_bind_service]')).toEqual(
      [],
    )
    expect(refusedPaths('cap_add: [CHOWN, SYS_ADMIN]')).toEqual(['services.web.cap_add'])
    expect(refusedPaths('cap_add: [ALL]')).toEqual(['services.web.cap_add'])
    expect(refusedPaths('cap_add: {CHOWN: true}')).toEqual(['services.web.cap_add'])
  })

  it('is not told twice of a service that stands in another file', () => {
    const text = 'services: {web: {extends: {file: common.yml, service: base}}}'
    expect(issuesOf(text).map(({ path }) => path)).toEqual(['services.web.extends'])
  })

  it('is told all at once, as a 422 below the field of the request', () => {
    const text = 'include: [a.yaml]\nservices: {web: {image: a, privileged: true, colour: red}}'
    try {
      parseCompose(text)
      expect.unreachable()
    } catch (error) {
      expect(invalidCompose('compose', error as ComposeError)).toMatchObject({
        status: 422,
        code: 'VALIDATION_ERROR',
        message: expect.stringMatching(/^compose\.include: is refused/),
        details: [
          { path: 'compose.include' },
          { path: 'compose.services.web.privileged' },
          { path: 'compose.services.web.colour' },
        ],
      })
    }
  })

  it('but asks for nothing is ignored, and both lists are in the plan', () => {
    const plan = parseCompose(
      'version: "3"\nx-common: {a: 1}\nservices: {web: {image: a, privileged: false, network_mode: bridge, restart: always, security_opt: ["no-new-privileges:true"]}}',
    )
    expect(plan.taken.map(({ path }) => path)).toEqual([
      'services',
      'services.web.image',
      'services.web.restart',
    ])
    expect(plan.ignored.map(({ path }) => path)).toEqual([
      'version',
      'x-common',
      'services.web.privileged',
      'services.web.network_mode',
      'services.web.security_opt',
    ])
    expect(plan.ignored.every(({ text }) => text.length > 0)).toBe(true)
  })

  it.each([
    '',
    '[]',
    'services:',
    'services: {}',
    'services: {web: 1}',
    'services: {"a b": {image: x}}',
    'a: [',
    'services: {web: {}}',
  ])('refuses %j', (text) => {
    expect(issuesOf(text).length).toBeGreaterThan(0)
  })
})

describe('YAML', () => {
  it('has anchors and merge keys', () => {
    const plan = parseCompose(
      'x-base: &base {image: a, environment: {A: "1"}}\nservices:\n  one: {<<: *base}\n  two: {<<: *base, environment: {B: "2"}}',
    )
    expect(plan.services.map(({ environment }) => environment)).toEqual([{ A: '1' }, { B: '2' }])
  })

  it('with aliases upon aliases, too many values or too much text is refused', () => {
    const bomb = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]']
    for (let level = 1; level < 9; level++)
      bomb.push(`a${level}: &a${level} [${Array.from({ length: 10 }, () => `*a${level - 1}`).join(', ')}]`)
    expect(issuesOf(`${bomb.join('\n')}\nservices: {web: {image: a}}`)[0]?.message).toMatch(/too many values/)
    expect(issuesOf(`services: {web: {image: a}}\nx-a: ${'['.repeat(100_000)}`)).toHaveLength(1)
    expect(issuesOf(`services: {web: {image: a, environment: {${'A: b, '.repeat(60_000)}}}}`)).toHaveLength(1)
    expect(
      issuesOf(`services:\n  web:\n    image: a\n    environment:\n${'      - A\n'.repeat(2400)}`),
    ).toEqual([])
    const wide = `services: {web: {image: a, environment: [${Array.from({ length: 90 }, () => '"$A$A$A$A$A"').join(',')}]}}`
    expect(issuesOf(wide, { variables: { A: 'x'.repeat(60_000) } })[0]?.message).toMatch(/too long/)
  })

  it('of a custom tag is refused', () => {
    expect(issuesOf('services: {web: {image: a, ports: !reset []}}')).toHaveLength(1)
  })

  it('cannot reach what every object inherits', () => {
    expect(
      issuesOf('services: {web: {image: a, constructor: {a: 1}, __proto__: {privileged: true}}}').map(
        ({ path }) => path,
      ),
    ).toEqual(['services.web.constructor', 'services.web.__proto__'])
  })
})
