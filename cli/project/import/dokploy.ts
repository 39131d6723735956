import { own } from '#server/kernel/own'
import {
  bytesOf,
  compact,
  createMoved,
  environmentOf,
  isFields,
  listOf,
  type Moved,
  numberOf,
  pathOf,
  textOf,
} from './moved.ts'

type Fields = Record<string, any>
type Adding = ReturnType<typeof createMoved>
const FORGES = {
  github: ['https://github.com', 'owner', 'repository', 'branch', 'buildPath'],
  gitlab: ['https://gitlab.com', 'gitlabOwner', 'gitlabRepository', 'gitlabBranch', 'gitlabBuildPath'],
  bitbucket: [
    'https://bitbucket.org',
    'bitbucketOwner',
    'bitbucketRepository',
    'bitbucketBranch',
    'bitbucketBuildPath',
  ],
} as const
const ENGINES = {
  postgres: 'postgres',
  mysql: 'mysql',
  mariadb: 'mariadb',
  mongo: 'mongodb',
  redis: 'redis',
} as const

/** Where the source is: an image, a repository by its address, or one at a forge. */
function sourceOf(one: Fields): Fields | undefined {
  if (one.sourceType === 'docker') {
    const image = textOf(one.dockerImage)
    return image === undefined ? undefined : { image }
  }
  if (one.sourceType === 'raw') {
    const compose = textOf(one.composeFile)
    return compose === undefined ? undefined : { compose }
  }
  if (one.sourceType === 'git') {
    const git_url = textOf(one.customGitUrl)
    if (git_url === undefined) return undefined
    return compact({
      git_url,
      branch: textOf(one.customGitBranch),
      base_directory: pathOf(one.customGitBuildPath),
    })
  }
  const forge = FORGES[one.sourceType as keyof typeof FORGES]
  if (!forge) return undefined
  const [base, owner, repository, branch, folder] = forge
  if (!textOf(one[owner]) || !textOf(one[repository])) return undefined
  return compact({
    git_url: `${base}/${textOf(one[owner])}/${textOf(one[repository])}.git`,
    branch: textOf(one[branch]),
    base_directory: pathOf(one[folder]),
  })
}
const domainsOf = (one: Fields): Fields[] =>
  listOf(one.domains)
    .filter(({ host }) => textOf(host) && !/\.traefik\.me$/.test(String(host)))
    .map(({ host, path, https, port, serviceName, stripPath }) =>
      compact({
        hostname: textOf(host),
        path: textOf(path) === '/' ? undefined : textOf(path),
        strip_path: stripPath === true ? true : undefined,
        port: numberOf(port),
        service: textOf(serviceName),
        ssl_mode: https === false ? 'off' : undefined,
      }),
    )
const BYTES_PER_CPU = 1_000_000_000

function add(moved: Adding, kind: 'application' | 'compose', one: Fields): void {
  const at = `${kind} ${textOf(one.name) ?? '?'}`
  const source = sourceOf(one)
  if (!source)
    return moved.note(
      'refused',
      at,
      `comes from ${textOf(one.sourceType) ?? 'nowhere'}, which cannot be read from here.`,
    )
  const in_repository = kind === 'compose' && source.git_url !== undefined
  const [first] = listOf(one.domains)
  const cpus = numberOf(one.cpuLimit)
  const name = moved.addApp(
    at,
    textOf(one.name) ?? textOf(one.appName) ?? kind,
    compact({
      ...source,
      ...(in_repository ? { source: 'compose', compose_path: pathOf(one.composePath) } : {}),
      build: compact({
        start_command: kind === 'application' ? textOf(one.command) : undefined,
        dockerfile_path:
          one.buildType === 'dockerfile' && source.git_url ? pathOf(one.dockerfile) : undefined,
        args: environmentOf(one.buildArgs),
      }),
      port: kind === 'application' ? numberOf(first?.port) : undefined,
      replicas: numberOf(one.replicas),
      limits: compact({
        memory_bytes: bytesOf(one.memoryLimit),
        // Swarm counts billionths of a core.
        cpus: cpus !== undefined && cpus >= 1e6 ? cpus / BYTES_PER_CPU : cpus,
      }),
      auto_deploy: one.autoDeploy === false ? false : undefined,
      watch_paths: Array.isArray(one.watchPaths) ? one.watchPaths.filter(textOf) : undefined,
      domains: domainsOf(one).map(({ port: _port, ...domain }) => domain),
    }),
    environmentOf(one.env),
  )
  for (const mount of listOf(one.mounts)) {
    const path = textOf(mount.mountPath)
    const old = textOf(mount.volumeName)
    const place = `${at} mount ${path ?? '?'}`
    if (mount.type === 'volume' && path && old && kind === 'application')
      moved.addVolume(place, name, path, old)
    else
      moved.note(
        'refused',
        place,
        mount.type === 'file'
          ? 'is a file; add it with POST /api/apps/{id}/mounts.'
          : 'is a folder of the server, or has no name.',
      )
  }
  for (const [field, list] of [
    ['ports', 'is a port of the server'],
    ['redirects', 'is a redirect; add it with POST /api/redirects'],
    ['security', 'is a password of a page; set basic_auth on the domain'],
  ] as const)
    for (const _each of listOf(one[field])) moved.note('refused', `${at} ${field}`, `${list}.`)
  if (textOf(one.customGitSSHKeyId))
    moved.note('refused', `${at} SSH key`, 'stays there; add it as a deploy key.')
}

function addAll(moved: Adding, holder: Fields): void {
  for (const one of listOf(holder.applications)) add(moved, 'application', one)
  for (const one of listOf(holder.compose)) add(moved, 'compose', one)
  for (const [kind, engine] of Object.entries(ENGINES))
    for (const one of listOf(own(holder, kind)))
      moved.addDatabase(
        `${kind} ${textOf(one.name) ?? '?'}`,
        textOf(one.name) ?? kind,
        engine,
        one.dockerImage,
      )
}

/** Reads what Dokploy's API tells of projects (`project.all`, `project.one`) or of one application. */
export function fromDokploy(tree: unknown): Moved {
  const moved = createMoved()
  // An answer of the API may lie in its envelope.
  const inner = isFields(tree) && isFields(tree.result) ? (tree.result.data?.json ?? tree.result.data) : tree
  for (const holder of listOf(isFields(inner) ? [inner] : inner)) {
    if (holder.applicationId !== undefined) add(moved, 'application', holder)
    else if (holder.composeId !== undefined) add(moved, 'compose', holder)
    else for (const each of [holder, ...listOf(holder.environments)]) addAll(moved, each)
  }
  return moved
}
