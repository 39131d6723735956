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

/** Variables of a project and of an environment in it, which its apps refer to. */
type Shared = Record<'project' | 'environment', Fields>
const REFERENCE = /\$\{\{\s*(project|environment)\.(\w+)\s*\}\}/g

/** Variables of an app with what they refer to in them; one that refers to what is not there is told. */
function variablesOf(moved: Adding, at: string, env: unknown, shared: Shared): Fields {
  const found: [string, string][] = []
  for (const [key, text] of Object.entries(environmentOf(env))) {
    let missing: string | undefined
    const value = String(text).replaceAll(REFERENCE, (_all, kind: keyof Shared, name: string) => {
      const known = own(shared[kind], name)
      if (known === undefined) missing = `${kind}.${name}`
      return String(known ?? '')
    })
    if (missing === undefined) found.push([key, value])
    else moved.note('refused', `${at} ${key}`, `refers to ${missing}, which is not in the export.`)
  }
  return Object.fromEntries(found)
}

/** What an app has there that it does not get here. */
function tellOthers(moved: Adding, at: string, one: Fields): void {
  for (const [field, list] of [
    ['ports', 'is a port of the server'],
    ['redirects', 'is a redirect; add it with POST /api/redirects'],
  ] as const)
    for (const _each of listOf(one[field])) moved.note('refused', `${at} ${field}`, `${list}.`)
  if (listOf(one.security).length > 0) moved.noteOpenPage(at)
  if (textOf(one.customGitSSHKeyId))
    moved.note('refused', `${at} SSH key`, 'stays there; add it as a deploy key.')
  if (one.sourceType === 'docker' && textOf(one.password))
    moved.note('refused', `${at} registry`, 'asks for a login: add it with POST /api/registries.')
  for (const field of ['buildSecrets', 'previewEnv', 'dockerBuildStage', 'publishDirectory', 'args'] as const)
    if (textOf(one[field]) ?? (Array.isArray(one[field]) && one[field].length > 0))
      moved.note('refused', `${at} ${field}`, 'is not taken; set by hand what the app needs of it.')
  for (const field of ['schedules', 'backups'] as const)
    for (const _each of listOf(one[field]))
      moved.note('refused', `${at} ${field}`, 'is not taken; add it here by hand.')
}

function add(moved: Adding, kind: 'application' | 'compose', one: Fields, shared: Shared): void {
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
    variablesOf(moved, at, one.env, shared),
    textOf(one.appName),
  )
  for (const { hostname, port } of domainsOf(one))
    if (kind === 'application' && port !== undefined && port !== numberOf(first?.port))
      moved.note('refused', `${at} domain ${hostname}`, `asks for port ${port}; set that on the domain.`)
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
  tellOthers(moved, at, one)
}

function addAll(moved: Adding, holder: Fields, shared: Shared): void {
  for (const one of listOf(holder.applications)) add(moved, 'application', one, shared)
  for (const one of listOf(holder.compose)) add(moved, 'compose', one, shared)
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
    const project = environmentOf(isFields(holder.project) ? holder.project.env : holder.env)
    const alone = { project, environment: environmentOf(holder.environment?.env) }
    if (holder.applicationId !== undefined) add(moved, 'application', holder, alone)
    else if (holder.composeId !== undefined) add(moved, 'compose', holder, alone)
    else
      for (const each of [holder, ...listOf(holder.environments)])
        addAll(moved, each, { project, environment: each === holder ? {} : environmentOf(each.env) })
  }
  return moved
}
