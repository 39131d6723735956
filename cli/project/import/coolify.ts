import {
  bytesOf,
  compact,
  createMoved,
  domainsOf,
  environmentOf,
  isFields,
  listOf,
  type Moved,
  numberOf,
  pathOf,
  textOf,
} from './moved.ts'

type Fields = Record<string, any>
const ENGINES: readonly (readonly [RegExp, string])[] = [
  [/postgres/, 'postgres'],
  [/mysql/, 'mysql'],
  [/mariadb/, 'mariadb'],
  [/mongo/, 'mongodb'],
  [/redis|keydb|dragonfly/, 'redis'],
  [/valkey/, 'valkey'],
  [/clickhouse/, 'clickhouse'],
]

/** `owner/name` stands for a repository at GitHub. */
const repositoryOf = (text: string): string =>
  /^[\w.-]+\/[\w.-]+$/.test(text) ? `https://github.com/${text}${text.endsWith('.git') ? '' : '.git'}` : text

/** Where the source of an application comes from, by its build pack. */
function sourceOf(app: Fields): Fields | undefined {
  const image = textOf(app.docker_registry_image_name)
  if (app.build_pack === 'dockerimage' && image)
    return { image: `${image}:${textOf(app.docker_registry_image_tag) ?? 'latest'}` }
  const compose = textOf(app.docker_compose_raw) ?? textOf(app.docker_compose)
  const git = textOf(app.git_full_url) ?? textOf(app.git_repository)
  if (app.build_pack === 'dockercompose' && !git) return compose ? { compose } : undefined
  if (!git) {
    const dockerfile = textOf(app.dockerfile)
    if (dockerfile) return { dockerfile }
    return compose ? { compose } : undefined
  }
  const stands_in_repository = app.build_pack === 'dockercompose'
  return compact({
    ...(stands_in_repository ? { source: 'compose', compose_path: pathOf(app.docker_compose_location) } : {}),
    git_url: repositoryOf(git),
    branch: textOf(app.git_branch),
    base_directory: pathOf(app.base_directory),
  })
}

/** What the API gives as an application, with its variables below `environment_variables`. */
function addApplication(moved: ReturnType<typeof createMoved>, app: Fields): void {
  const at = `application ${textOf(app.name) ?? textOf(app.uuid) ?? '?'}`
  const source = sourceOf(app)
  if (!source) {
    return moved.note(
      'refused',
      at,
      'names no repository, image, Dockerfile or compose file. Export it with a token that may read sensitive data.',
    )
  }
  const [port, ...ports] = (textOf(app.ports_exposes) ?? '').split(',').map(numberOf)
  const build = compact({
    install_command: textOf(app.install_command),
    build_command: textOf(app.build_command),
    start_command: textOf(app.start_command),
    release_command: textOf(app.pre_deployment_command),
    dockerfile_path:
      app.build_pack === 'dockerfile' && source.git_url ? pathOf(app.dockerfile_location) : undefined,
  })
  const variables = Object.fromEntries(
    [...listOf(app.environment_variables), ...listOf(app.envs)]
      .filter(({ is_preview }) => !is_preview)
      .map(({ key, real_value, value }) => [String(key), real_value ?? value ?? '']),
  )
  const name = moved.addApp(
    at,
    textOf(app.name) ?? String(app.uuid),
    compact({
      ...source,
      build,
      port,
      health_check: app.health_check_enabled
        ? compact({ type: 'http', path: textOf(app.health_check_path) })
        : undefined,
      limits: compact({ memory_bytes: bytesOf(app.limits_memory), cpus: numberOf(app.limits_cpus) }),
      watch_paths: textOf(app.watch_paths)
        ?.split('\n')
        .map((line) => line.trim())
        .filter(Boolean),
      domains: domainsOf((textOf(app.fqdn) ?? '').split(',').filter(Boolean)),
    }),
    variables,
  )
  const told = [
    [ports.length > 0, 'ports_exposes', `only ${port} takes requests; name others on single domains.`],
    [app.build_pack === 'nixpacks', 'build_pack', 'nixpacks is replaced by the detection of Portreeve.'],
    [app.build_pack === 'static', 'publish_directory', 'the folder of a static site is detected.'],
  ] as const
  for (const [is_so, field, message] of told) if (is_so) moved.note('changed', `${at} ${field}`, message)
  for (const field of [
    'ports_mappings',
    'custom_docker_run_options',
    'post_deployment_command',
    'custom_labels',
    'custom_nginx_configuration',
    'private_key_id',
  ] as const)
    if (textOf(app[field]) ?? numberOf(app[field]))
      moved.note('refused', `${at} ${field}`, `is not taken; set what ${name} needs of it by hand.`)
}

/** The lists of a tree: one application, or a list of them, counts as `applications`. */
function rootOf(tree: unknown): Fields {
  if (Array.isArray(tree)) return { applications: tree }
  if (!isFields(tree)) return {}
  return tree.git_repository === undefined ? tree : { applications: [tree] }
}

/**
 * Reads what Coolify's API tells: the list of `GET /api/v1/applications` or one of them, or an object with
 * `applications`, `services` and `databases`.
 */
export function fromCoolify(tree: unknown): Moved {
  const moved = createMoved()
  const root = rootOf(tree)
  for (const app of listOf(root.applications)) addApplication(moved, app)
  for (const service of listOf(root.services)) {
    const compose = textOf(service.docker_compose_raw)
    const at = `service ${textOf(service.name) ?? '?'}`
    if (compose) moved.addApp(at, textOf(service.name) ?? 'service', { compose }, environmentOf(service.env))
    else moved.note('refused', at, 'has no compose file in the export.')
  }
  for (const database of listOf(root.databases)) {
    const kind = `${textOf(database.database_type) ?? textOf(database.type) ?? ''} ${textOf(database.image) ?? ''}`
    const engine = ENGINES.find(([pattern]) => pattern.test(kind))?.[1]
    const at = `database ${textOf(database.name) ?? '?'}`
    if (engine) moved.addDatabase(at, textOf(database.name) ?? engine, engine, database.image)
    else moved.note('refused', at, 'is of a kind that is not known here.')
  }
  return moved
}
